"""
The softmax of a trained language model, from wherever it was read, and the mixes beside it.

The `weights.hdf5` of an official biLM lacks it: there it is a file of its own. The original's
`bin/dump_weights.py` leaves the softmax out. For two released models a file with it was published
all the same: `NAMED_SOFTMAXES` of `named_models` has their addresses. For other models a copy of
that script without its test for "softmax" writes one from the checkpoint of the training. There the
variables are `lm/softmax/W`, shape `(words, projection_dim)`, and `lm/softmax/b`, shape `(words,)`;
the script drops `lm/`.
"""

from copy import deepcopy
from os import PathLike
from typing import Any, Dict, NamedTuple, Optional, Union

import numpy
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.paths import local_file
from elmo_scratch.interop.archives.weights import SOFTMAX_PREFIX, Tensors, type_of
from elmo_scratch.interop.layer_files.hdf5 import open_hdf5
from elmo_scratch.interop.official.files import find_tensors
from elmo_scratch.modules import OutputSoftmax
from elmo_scratch.modules.softmaxes import SampledSoftmax
from elmo_scratch_compat.strangers import config_as_data


class LoadedSoftmax(NamedTuple):
    """
    The softmax of a language model: its block `softmax` of a config, `None` where there is none,
    its tensors by their names in an `OutputSoftmax`, and whether a word is looked up in lower case
    before it is scored.
    """

    config: Optional[Dict[str, Any]] = None
    tensors: Tensors = {}
    lowercase: bool = False


NO_SOFTMAX = LoadedSoftmax()


class LoadedMixes(NamedTuple):
    """
    The mixes of an `Elmo`: its settings, and their tensors by their names in it.
    """

    settings: Dict[str, Any]
    tensors: Tensors


DEFAULT_SOFTMAX = {"type": "full"}
"""The softmax of a language model whose config names none."""


def build_softmax(
    read: LoadedSoftmax, num_words: int, dim: int, source: Union[str, PathLike]
) -> OutputSoftmax:
    """
    Builds the softmax of a language model with its trained weights, of whatever kind its config
    names.

    # Parameters

    read : `LoadedSoftmax`
        What was read from its files.
    num_words : `int`
        The words that it predicts.
    dim : `int`
        The size of a direction's states.
    source : `Union[str, PathLike]`
        The name of the archive or folder in errors.

    # Returns

    `OutputSoftmax`
        In evaluation mode.

    # Raises

    ConfigurationError
        If there is no softmax, or its weights don't fit the config or are not finite.
    """
    if not read.tensors:
        raise ConfigurationError(
            f"{source}: expected the weights of a softmax, {SOFTMAX_PREFIX}*, by which words are "
            "scored, but there are none. Take the archive that `allennlp train` wrote of the "
            "language model, or what `allennlp elmo-export --format safetensors` made of it."
        )
    settings = Params(deepcopy(read.config or DEFAULT_SOFTMAX))
    try:
        with config_as_data():
            softmax = OutputSoftmax.from_params(settings, num_words=num_words, dim=dim)
        for name, _ in softmax.named_parameters():
            if name in read.tensors and not read.tensors[name].is_floating_point():
                raise ValueError(f"{name} holds numbers of the type {type_of(read.tensors[name])}")
        softmax.load_state_dict(read.tensors)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(
            f"{source}: the softmax's weights do not fit the config. {reason}"
        ) from None
    for name, weight in softmax.named_parameters():
        if not weight.isfinite().all():
            raise ConfigurationError(
                f"{source}: {SOFTMAX_PREFIX}{name} holds numbers that are not finite; such weights "
                "come of a training that diverged"
            )
    return softmax.eval()


NO_SOFTMAX_FILE = (
    "expected a language model with its softmax, by which words are scored, but official files "
    "hold none. Name its file by --softmax-file and its words by --vocab-path (in Python: "
    "`softmax_file`, `vocab_file`), or put them into the folder of the model as "
    "softmax_weights.hdf5 and vocab.txt. Of the released models `original` and `original-5.5B` "
    "were published with them. Or take the archive of a language model"
)
"""The error for a model of official files alone."""

WEIGHT, BIAS = "softmax/W", "softmax/b"
"""The variables of the original's trainer, under the names that its script gives them."""


def read_official_softmax(
    softmax_file: Union[str, PathLike], num_words: int, dim: int
) -> SampledSoftmax:
    """
    Reads the weights of a softmax: `softmax/W`, shape `(num_words, dim)`, and `softmax/b`, shape
    `(num_words,)`, in the order of the model's vocabulary file. Other tensors may lie beside them.

    # Parameters

    softmax_file : `Union[str, PathLike]`
        A path or an address.
    num_words : `int`
        The words of the vocabulary file.
    dim : `int`
        The size of a state of the biLM.

    # Returns

    `SampledSoftmax`
        In evaluation mode, where it is exact. The id of a word is its row in the file plus one;
        id 0, padding, is never predicted.

    # Raises

    ConfigurationError
        If the file is missing or can't be read; or a tensor is missing, of another shape or type,
        or holds a number that is not finite.
    """
    source = str(softmax_file)
    expected = {WEIGHT: (num_words, dim), BIAS: (num_words,)}
    path = local_file(softmax_file)
    try:
        with open_hdf5(path) as file:
            found = find_tensors(file, source)
            for name, shape in expected.items():
                if name not in found:
                    raise ConfigurationError(
                        f"{source}: expected the softmax of a biLM, {WEIGHT} and {BIAS}, but "
                        f"{name} is missing; the file holds {sorted(found)[:10]}. The released "
                        "models have a file of its own for it, `..._softmax_weights.hdf5`."
                    )
                if found[name].shape != shape:
                    raise ConfigurationError(
                        f"{source}: expected {name} to have the shape {shape}, for {num_words} "
                        f"words of the vocabulary file and states of {dim} numbers, but it has the "
                        f"shape {found[name].shape}. Do the files come from the same model?"
                    )
            softmax = SampledSoftmax(num_words=1 + num_words, dim=dim, num_samples=1)
            with torch.no_grad():
                for name, parameter in ((WEIGHT, softmax.weight), (BIAS, softmax.bias)):
                    parameter[0] = 0.0
                    with numpy.errstate(over="ignore"):
                        numbers = found[name][...].astype("float32", copy=False)
                    parameter[1:] = torch.from_numpy(numbers)
    except ConfigurationError:
        raise
    except Exception as error:  # h5py raises nearly every kind of error for damaged files
        raise ConfigurationError(
            f"{source}: expected the softmax of a biLM in an HDF5 file, but it can't be read; if "
            f"it was downloaded, the download may be incomplete. {error}"
        ) from None
    for name, parameter in ((WEIGHT, softmax.weight), (BIAS, softmax.bias)):
        if not parameter.isfinite().all():
            raise ConfigurationError(
                f"{source}: {name} holds numbers that are not finite; such weights come of a "
                "training that diverged or of a damaged file"
            )
    return softmax.eval()
