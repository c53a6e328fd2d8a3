"""The numbers by which an indexer tells an embedder which tokens of a file are meant."""

import os
from array import array
from functools import lru_cache
from pathlib import Path
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import LayerFile
from elmo_scratch.interop.file_identity import Stamp, stamp_of
from elmo_scratch.interop.layer_files.sentence_index import SentenceIndex

SHOWN = 300
"""Characters of a sentence in an error message."""


class TokenPlaces(NamedTuple):
    """
    Where tokens are.

    # Parameters

    sentences : `numpy.ndarray`
        Shape `(n,)`: the places of their sentences in the file.
    offsets : `numpy.ndarray`
        Shape `(n,)`: their own places in these.
    """

    sentences: numpy.ndarray
    offsets: numpy.ndarray


class TokenNumbers:
    """
    Numbers the tokens of all sentences of a file of layers, one sentence after the other, from 1.

    # Parameters

    file : `str`
        The file.

    # Raises

    ConfigurationError
        If it can't be read, has no vectors of tokens, or doesn't know its sentences.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        counts = array("q")
        with LayerFile(file) as layer_file:
            if layer_file.facts.pool is not None:
                raise ConfigurationError(
                    f"{file}: expected the vectors of tokens, but they were pooled to one a "
                    "sentence. Export the text without --pool."
                )
            self._index = SentenceIndex(_counted(layer_file, counts))
            if not len(self._index) and len(layer_file):
                raise ConfigurationError(
                    f"{file}: expected a file that knows its sentences. Export the text without "
                    "--forget-sentences."
                )
        # Before the sentence at a place there are so many tokens.
        self._starts = numpy.concatenate([[0], numpy.cumsum(counts, dtype="int64")])

    def __len__(self) -> int:
        """How many tokens there are."""
        return int(self._starts[-1])

    @property
    def num_sentences(self) -> int:
        """How many sentences there are."""
        return len(self._index)

    def of(self, words: Sequence[str]) -> Sequence[int]:
        """
        The numbers of the tokens of a sentence.

        # Raises

        ConfigurationError
            If the file doesn't hold it.
        """
        sentence = " ".join(words)
        place = self._index.find(sentence) if words else None
        # A word with a space in it would stand for two tokens.
        if words and (place is None or self.num_tokens(place) != len(words)):
            shown = sentence if len(sentence) <= SHOWN else f"{sentence[:SHOWN]}..."
            raise ConfigurationError(
                f"{self.file}: expected the layers of the {len(words)} tokens {shown!r}, but there "
                "are none. Export every text that the task reads, training, validation and test "
                "data, one a line, cut into the same tokens, with spaces between them."
            )
        start = 0 if place is None else int(self._starts[place])
        return range(start + 1, start + 1 + len(words))

    def check(self, numbers: numpy.ndarray) -> None:
        """
        # Raises

        ConfigurationError
            If a number is none of a token.
        """
        if numbers.size and not 1 <= numbers.min() <= numbers.max() <= len(self):
            raise ConfigurationError(
                f"{self.file} holds the tokens 1 to {len(self)}, but the texts were given other "
                "numbers. Name the same file for the indexer and the embedder."
            )

    def places(self, numbers: numpy.ndarray) -> TokenPlaces:
        """
        # Parameters

        numbers : `numpy.ndarray`
            Shape `(n,)`: numbers of tokens.

        # Returns

        `TokenPlaces`
            Where they are.

        # Raises

        ConfigurationError
            If there is no such token.
        """
        self.check(numbers)
        sentences = numpy.searchsorted(self._starts, numbers, "left") - 1
        return TokenPlaces(sentences, numbers - 1 - self._starts[sentences])

    def key(self, place: int) -> str:
        """The name of the data set of the sentence at a place."""
        return self._index.key(place)

    def num_tokens(self, place: int) -> int:
        """How many tokens the sentence at a place has."""
        return int(self._starts[place + 1] - self._starts[place])


def shared_token_numbers(file: str, stamp: Optional[Stamp] = None) -> TokenNumbers:
    """
    The numbers of a file. An indexer and an embedder share them, and so do all fields.

    # Parameters

    file : `str`
        The file.
    stamp : `Stamp`, optional (default = `None`)
        That of the file that is meant, if it must be a certain one.

    # Raises

    ConfigurationError
        As `TokenNumbers`; also if the file is missing, or another one took its place.
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
    """As `shared_token_numbers`, as long as the file stays the same."""
    return TokenNumbers(file)


def _counted(layer_file: LayerFile, counts: array) -> Iterator[Tuple[str, str]]:
    """Yields tokens between single spaces and a key, and notes how many tokens there are."""
    for sentence, key in layer_file.sentences():
        tokens = sentence.split()
        counts.append(len(tokens))
        yield " ".join(tokens), key
