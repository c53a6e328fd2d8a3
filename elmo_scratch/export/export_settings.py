"""What an export keeps of the layers of a sentence, and in which form."""

from typing import Callable, Dict, NamedTuple, Optional, Tuple

import numpy

from elmo_scratch.interop.layer_files.facts import CHOICES

KEPT: Dict[str, Callable[[numpy.ndarray], numpy.ndarray]] = {
    "all": lambda layers: layers,
    "top": lambda layers: layers[-1],
    "average": lambda layers: layers.mean(axis=0),
}
"""What is kept of the layers of a sentence, of shape `(layers, tokens, width)`."""

POOLS: Dict[str, Callable[[numpy.ndarray], numpy.ndarray]] = {
    "mean": lambda vectors: vectors.mean(axis=-2),
    "max": lambda vectors: vectors.max(axis=-2),
}
"""What makes one vector of those of all tokens, of shape `(..., tokens, width)`."""

DTYPES: Tuple[str, ...] = CHOICES["dtype"]
"""The types that numbers can have in a file."""


class ExportSettings(NamedTuple):
    """
    # Parameters

    kept : `str`, optional (default = `"all"`)
        A key of `KEPT`.
    pool : `str`, optional (default = `None`)
        A key of `POOLS`: one vector a sentence in place of one a token.
    dtype : `str`, optional (default = `"float32"`)
        The type of the numbers in the file.
    compression : `str`, optional (default = `None`)
        Of the data sets: `"gzip"` or `"lzf"`.
    batch_size : `int`, optional (default = `64`)
        Sentences a batch.
    max_tokens : `int`, optional (default = `None`)
        Fill batches up to so many tokens in place of `batch_size`, padding included. Only where
        states are not carried from batch to batch.
    forget_sentences : `bool`, optional (default = `False`)
        Leave the index of sentences out.
    use_sentence_keys : `bool`, optional (default = `False`)
        Make each sentence the key of its vectors, in place of its number; then there is no index.
    """

    kept: str = "all"
    pool: Optional[str] = None
    dtype: str = "float32"
    compression: Optional[str] = None
    batch_size: int = 64
    max_tokens: Optional[int] = None
    forget_sentences: bool = False
    use_sentence_keys: bool = False

    @property
    def has_index(self) -> bool:
        """Whether the file says which sentence has which key."""
        return not (self.forget_sentences or self.use_sentence_keys)

    def of_layers(self, layers: numpy.ndarray) -> numpy.ndarray:
        """
        # Parameters

        layers : `numpy.ndarray`
            Of a sentence, shape `(layers, tokens, width)`.

        # Returns

        `numpy.ndarray`
            What is written.
        """
        vectors = KEPT[self.kept](layers)
        return vectors if self.pool is None else POOLS[self.pool](vectors)

    def num_bytes(self, layers: int, width: int, num_sentences: int, num_tokens: int) -> int:
        """The size of the vectors in a file, in bytes, before compression."""
        vectors = num_tokens if self.pool is None else num_sentences
        kept = layers if self.kept == "all" else 1
        return vectors * kept * width * numpy.dtype(self.dtype).itemsize
