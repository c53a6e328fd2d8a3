"""The softmax of a trained archive."""

from copy import deepcopy
from os import PathLike
from typing import Union

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.archives.weights import SOFTMAX_PREFIX, type_of
from elmo_scratch.interop.softmax_and_mixes import LoadedSoftmax
from elmo_scratch.modules import OutputSoftmax
from elmo_scratch_compat.strangers import config_as_data

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
