"""The layers of tokens, by number, from a file of layers."""

import hashlib
import os
from abc import ABC, abstractmethod
from array import array
from collections import OrderedDict
from functools import lru_cache
from pathlib import Path
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.sentence_forms import spaced_line
from elmo_scratch.files.identity import Stamp, stamp_of
from elmo_scratch.files.machine import machine_memory
from elmo_scratch.interop import LayerFile
from elmo_scratch.interop.layer_files.sentence_map import SentenceIndex

SHOWN = 300
"""Characters of a sentence in an error message."""

TOKEN_BITS, TEXT_BITS = 40, 22
"""
The lower bits of a number are the token's place in its file; the higher ones identify the text. A
signed 64-bit integer has room for both.
"""


class TokenPlaces(NamedTuple):
    """
    The places of tokens: of their sentences in the file, and their own in the sentences. Shape
    `(n,)` each.
    """

    sentences: numpy.ndarray
    offsets: numpy.ndarray


class TokenNumbers:
    """
    Numbers the tokens of all sentences of a file of layers, one sentence after the other. Numbers
    of different texts differ, so that an embedder with another file than the indexer notices.
    Raises `ConfigurationError` if the file can't be read, has no vectors of tokens, or no index.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        counts, digest = array("q"), hashlib.blake2b(digest_size=8)
        with LayerFile(file) as layer_file:
            self._index = SentenceIndex(_counted(layer_file, counts, digest))
        # `_starts[place]` is the number of tokens before the sentence at that place.
        self._starts = numpy.concatenate([[0], numpy.cumsum(counts, dtype="int64")])
        text = int.from_bytes(digest.digest(), "big") % 2**TEXT_BITS
        self.before_first = text << TOKEN_BITS
        """One less than the number of the first token."""

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def num_sentences(self) -> int:
        return len(self._index)

    def of(self, words: Sequence[str]) -> Sequence[int]:
        """
        Returns the numbers of a sentence's tokens. Raises `ConfigurationError` if the file lacks
        it.
        """
        place = self._index.find(spaced_line(words)) if words else None
        if words and (place is None or self.num_tokens(place) != len(words)):
            sentence = " ".join(words)
            shown = sentence if len(sentence) <= SHOWN else f"{sentence[:SHOWN]}..."
            raise ConfigurationError(
                f"{self.file}: expected the layers of the {len(words)} tokens {shown!r}, but there "
                "are none. Export every text that the task reads, training, validation and test "
                "data, one a line, cut into the same tokens, with spaces between them."
            )
        start = self.before_first + (0 if place is None else int(self._starts[place]))
        return range(start + 1, start + 1 + len(words))

    def rows(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """
        Returns how many tokens come before each token; both of shape `(n,)`. Raises
        `ConfigurationError` if a number is no token of this text.
        """
        rows = numbers - (self.before_first + 1)
        if rows.size and not 0 <= rows.min() <= rows.max() < len(self):
            raise ConfigurationError(
                f"{self.file}: expected the numbers of tokens of this file's text, but those of "
                "another one came. Name the same file for the indexer and the embedder: the `file` "
                "in the `token_indexers` of the reader and that in the `token_embedders` of the "
                "model."
            )
        return rows

    def places(self, numbers: numpy.ndarray) -> TokenPlaces:
        """
        Returns the places of tokens, given their numbers of shape `(n,)`. Raises as `rows` does.
        """
        rows = self.rows(numbers)
        sentences = numpy.searchsorted(self._starts, rows, "right") - 1
        return TokenPlaces(sentences, rows - self._starts[sentences])

    def key(self, place: int) -> str:
        """Returns the name of the data set of the sentence at a place."""
        return self._index.key(place)

    def num_tokens(self, place: int) -> int:
        return int(self._starts[place + 1] - self._starts[place])


def shared_token_numbers(file: str, stamp: Optional[Stamp] = None) -> TokenNumbers:
    """
    Returns the numbers of a file; an indexer, an embedder and all fields share them. Raises
    `ConfigurationError` as `TokenNumbers` does, or if the file is missing or has another `stamp`.
    """
    if not Path(file).exists():
        raise ConfigurationError(
            f"{file}: there is no such file of layers. A model that was trained on layers from a "
            "file needs them whenever it is loaded, those of the new texts among them: write them "
            "with `allennlp elmo`, or name another file by --overrides."
        )
    found = stamp_of(Path(file))
    if stamp not in (None, found):
        raise ConfigurationError(
            f"{file}: another file took the place of the one that the model was loaded with, and "
            "its numbers mean other tokens. Load the model again."
        )
    return _token_numbers(file, os.path.abspath(file), found)


@lru_cache(maxsize=8)
def _token_numbers(file: str, *identity: object) -> TokenNumbers:
    """Caches the numbers by path and stamp."""
    return TokenNumbers(file)


def _counted(
    layer_file: LayerFile, counts: array, digest: "hashlib.blake2b"
) -> Iterator[Tuple[str, str]]:
    """
    Yields each sentence, its tokens between single spaces, with its key. Appends its number of
    tokens to `counts` and adds it to the digest of the text.
    """
    for tokens, key in layer_file.token_sentences():
        counts.append(len(tokens))
        spaced = " ".join(tokens)
        digest.update(spaced.encode("utf-8", "surrogatepass") + b"\n")
        yield spaced, key


KEPT_BYTES = 2**28
"""How much memory the cache of recently read sentences may take."""


class TokenLayers(ABC):
    """The layers of all tokens of a file. Abstract."""

    @abstractmethod
    def of(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """
        Returns the layers of tokens, given at least one number, of shape `(n,)`. The result has the
        shape `(layers, n, width)` and the file's type; `layers` is 1 where the file keeps one
        layer. Raises `ConfigurationError` if there is no such token, or the file can't be read.
        """


class LayersOnDisk(TokenLayers):
    """Reads sentences when they are needed, and caches the last ones."""

    def __init__(self, layer_file: LayerFile, numbers: TokenNumbers) -> None:
        self._layer_file = layer_file
        self._numbers = numbers
        self._last: OrderedDict[int, numpy.ndarray] = OrderedDict()
        self._last_bytes = 0

    def of(self, numbers: numpy.ndarray) -> numpy.ndarray:
        places = self._numbers.places(numbers)
        distinct, rows = numpy.unique(places.sentences, return_inverse=True)
        sentences = [self._sentence(int(place)) for place in distinct]
        starts = numpy.cumsum([0, *(sentence.shape[1] for sentence in sentences)])
        together = numpy.concatenate(sentences, axis=1)  # (layers, tokens, width)
        return together[:, starts[rows] + places.offsets]

    def _sentence(self, place: int) -> numpy.ndarray:
        """Returns the layers of a sentence, shape `(layers, tokens, width)`."""
        if place in self._last:
            self._last.move_to_end(place)
            return self._last[place]
        layers = _read(self._layer_file, self._numbers, place)
        self._last[place] = layers
        self._last_bytes += layers.nbytes
        while self._last_bytes > KEPT_BYTES:
            self._last_bytes -= self._last.popitem(last=False)[1].nbytes
        return layers


class LayersInMemory(TokenLayers):
    """
    Reads the whole file once. Raises `ConfigurationError` if it doesn't fit into memory or can't be
    read.
    """

    def __init__(self, layer_file: LayerFile, numbers: TokenNumbers) -> None:
        self._numbers = numbers
        facts = layer_file.facts
        shape = (facts.layers if facts.kept == "all" else 1, len(numbers), facts.width)
        size = int(numpy.prod(shape, dtype=object)) * numpy.dtype(facts.dtype).itemsize
        if size > machine_memory():
            raise ConfigurationError(
                f"{layer_file.path}: the layers take {size / 2**30:.1f} GiB, but this machine has "
                f"{machine_memory() / 2**30:.1f} GiB of memory. Leave out `in_memory`."
            )
        self._layers = numpy.empty(shape, facts.dtype)
        start = 0
        for place in range(numbers.num_sentences):
            sentence = _read(layer_file, numbers, place)
            self._layers[:, start : start + sentence.shape[1]] = sentence
            start += sentence.shape[1]

    def of(self, numbers: numpy.ndarray) -> numpy.ndarray:
        return self._layers[:, self._numbers.rows(numbers)]


def _read(layer_file: LayerFile, numbers: TokenNumbers, place: int) -> numpy.ndarray:
    """Reads the layers of the sentence at a place, shape `(layers, tokens, width)`."""
    return layer_file.read_tokens(numbers.key(place), numbers.num_tokens(place))
