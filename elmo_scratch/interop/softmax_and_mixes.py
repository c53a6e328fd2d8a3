"""The softmax and the mixes that were read beside the weights of a trained biLM."""

from typing import Any, Dict, NamedTuple, Optional

from elmo_scratch.interop.archives.weights import Tensors


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
