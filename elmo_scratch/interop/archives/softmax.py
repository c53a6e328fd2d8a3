"""The softmax of a trained archive."""

from copy import deepcopy
from os import PathLike
from typing import Union

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.archives.archive import PretrainedLanguageModel
from elmo_scratch.interop.archives.weights import SOFTMAX_PREFIX
from elmo_scratch.modules import OutputSoftmax

DEFAULT_SOFTMAX = {"type": "full"}
"""The softmax of a language model whose config names none."""


def build_softmax(
    read: PretrainedLanguageModel, archive_file: Union[str, PathLike]
) -> OutputSoftmax:
    """
    Builds the softmax of a language model with its trained weights, of whatever kind the config
    names.

    # Parameters

    read : `PretrainedLanguageModel`
        What was read from the archive.
    archive_file : `Union[str, PathLike]`
        The archive's name in errors.

    # Returns

    `OutputSoftmax`
        In evaluation mode.

    # Raises

    ConfigurationError
        If the archive has no softmax, or its weights don't fit the config or are not finite.
    """
    if not read.softmax:
        raise ConfigurationError(
            f"{archive_file}: expected the weights of a softmax, {SOFTMAX_PREFIX}*, by which words "
            "are scored, but there are none. Take the archive that `allennlp train` wrote of the "
            "language model."
        )
    words, bilm = read.pretrained.blueprint.words, read.pretrained.bilm
    settings = Params(deepcopy(read.config["model"].get("softmax") or DEFAULT_SOFTMAX))
    try:
        softmax = OutputSoftmax.from_params(
            settings, num_words=words.sizes()["num_words"], dim=bilm.dim
        )
        softmax.load_state_dict(read.softmax)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(
            f"{archive_file}: the softmax's weights do not fit the config. {reason}"
        ) from None
    for name, weight in softmax.named_parameters():
        if not weight.isfinite().all():
            raise ConfigurationError(
                f"{archive_file}: {SOFTMAX_PREFIX}{name} holds numbers that are not finite; such "
                "weights come of a training that diverged"
            )
    return softmax.eval()
