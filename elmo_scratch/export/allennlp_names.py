"""
What AllenNLP 0.9 had in `allennlp.commands.elmo`: old code finds it there
(`elmo_scratch_compat`).
"""

import numpy

from elmo_scratch.export.elmo_embedder import BATCH_SIZE as DEFAULT_BATCH_SIZE
from elmo_scratch.export.elmo_embedder import ElmoEmbedder as ElmoEmbedder
from elmo_scratch.interop.official.files import RELEASED_OPTIONS as DEFAULT_OPTIONS_FILE
from elmo_scratch.interop.official.files import RELEASED_WEIGHTS as DEFAULT_WEIGHT_FILE


def empty_embedding() -> numpy.ndarray:
    """The layers of a sentence without tokens, in the released original model."""
    return numpy.zeros((3, 0, 1024))


__all__ = [
    "DEFAULT_BATCH_SIZE",
    "DEFAULT_OPTIONS_FILE",
    "DEFAULT_WEIGHT_FILE",
    "ElmoEmbedder",
    "empty_embedding",
]
