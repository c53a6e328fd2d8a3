"""What a method learns vectors from, a text as ids of its words, and the base class of methods."""

import logging
from abc import ABC, abstractmethod
from array import array
from os import PathLike
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Union

import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from allennlp.data import DatasetReader, Field, Instance
from allennlp.data.fields import ListField, TextField

from elmo_scratch.data import PreparedCorpus
from elmo_scratch.data.corpus import DataPath, is_table, list_shards
from elmo_scratch.interop.static_vectors import is_writable

logger = logging.getLogger(__name__)


def check_option(option: str, value: float, least: float, most: Optional[float] = None) -> None:
    """
    Raises `ConfigurationError` if the value of an option is below `least`, above `most` or NaN.
    `option` is its name on the command line, without the dashes.
    """
    if least <= value and (most is None or value <= most):
        return
    expected = f"{least} or more" if most is None else f"{least} to {most}"
    raise ConfigurationError(f"expected --{option} of {expected}, got {value}")


class NumberedText(NamedTuple):
    """
    A text that can be read again and again.

    # Parameters

    words : `Sequence[str]`
        The distinct words.
    counts : `numpy.ndarray`
        Shape `(words,)`: the number of tokens of each word.
    tokens : `numpy.ndarray`
        Shape `(tokens,)`: for each token the index of its word in `words`.
    sentence_starts : `numpy.ndarray`
        Shape `(sentences + 1,)`: the index in `tokens` at which each sentence begins.
    """

    words: Sequence[str]
    counts: numpy.ndarray
    tokens: numpy.ndarray
    sentence_starts: numpy.ndarray

    @classmethod
    def of_corpus(cls, data_path: DataPath) -> "NumberedText":
        """
        Opens text files as pre-training reads them; they are prepared once for both and stay on
        the disk. `data_path` names them as in `list_shards`: one sentence a line, words between
        spaces, plain or gzip. Raises `ConfigurationError` if there is no such text, or it is wrong.
        """
        for shard in list_shards(data_path):
            if is_table(shard):
                raise ConfigurationError(
                    f"{shard}: expected text with one sentence a line, but the name is that of a "
                    "table. Say how to read it, for AG News by --reader ag_news."
                )
        corpus = PreparedCorpus.of(data_path, skip_empty_shards=True)
        return cls(corpus.words, corpus.words.counts, corpus.tokens, corpus.sentence_starts)

    @classmethod
    def of_reader(cls, reader: DatasetReader, data_path: Union[str, PathLike]) -> "NumberedText":
        """
        Reads all text fields of a reader's instances, each field as a sentence. The text is kept in
        memory, in four bytes a token. Raises `ConfigurationError` if `data_path` can't be read or
        has no token.
        """
        numbers: Dict[str, int] = {}
        tokens, starts = array("I"), array("q", [0])
        instances = _instances(reader, data_path)
        for sentence in _sentences(Tqdm.tqdm(instances, desc="reading", unit=" instances")):
            tokens.extend([numbers.setdefault(word, len(numbers)) for word in sentence])
            starts.append(len(tokens))
        if not tokens:
            raise ConfigurationError(
                f"{data_path}: expected instances with text fields, but the reader "
                f"{type(reader).__name__} found no token"
            )
        ids = numpy.frombuffer(tokens, dtype=numpy.uintc)
        counts = numpy.bincount(ids, minlength=len(numbers))
        return cls(list(numbers), counts, ids, numpy.frombuffer(starts, dtype=numpy.int64))


def _instances(reader: DatasetReader, data_path: Union[str, PathLike]) -> Iterator[Instance]:
    """Yields a reader's instances; its errors become errors that name the text."""
    try:
        yield from reader.read(data_path)
    except ConfigurationError:
        raise
    except Exception as error:
        # Readers raise all kinds of them for a text in another format.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigurationError(
            f"{data_path}: can't be read by {type(reader).__name__} ({reason})"
        ) from error


def _sentences(instances: Iterable[Instance]) -> Iterator[List[str]]:
    """Yields the words of each text field."""
    for instance in instances:
        for field in instance.fields.values():
            yield from _sentences_of(field)


def _sentences_of(field: Field) -> Iterator[List[str]]:
    """Yields the words of a text field, or of each text field in a list."""
    if isinstance(field, TextField):
        yield [token.text for token in field.tokens if token.text]
    elif isinstance(field, ListField):
        for one in field.field_list:
            yield from _sentences_of(one)


TOKENS_AT_ONCE = 2**20
"""The number of tokens in memory at once; a longer sentence is read as a whole."""

_NAMED_AT_MOST = 5


class Block(NamedTuple):
    """
    Some successive sentences of a text. `tokens` and `sentences` have shape `(tokens,)`: for each
    token the index of its word in `VectorText.words`, and the number of its sentence, which rises.
    """

    tokens: numpy.ndarray
    sentences: numpy.ndarray


class VectorText:
    """
    A text without the words that get no vector. As in the original word2vec, the words on both
    sides of such a word become neighbours.

    # Parameters

    text : `NumberedText`
        The whole text.
    min_count : `int`, optional (default = `5`)
        Rarer words get no vector.
    max_words : `int`, optional (default = `None`)
        At most so many words get vectors, the most frequent ones. `None` means all.
    lowercase : `bool`, optional (default = `False`)
        Convert words to lower case.

    # Raises

    ConfigurationError
        If no word is left.
    """

    def __init__(
        self,
        text: NumberedText,
        *,
        min_count: int = 5,
        max_words: Optional[int] = None,
        lowercase: bool = False,
    ) -> None:
        check_option("min-count", min_count, 1)
        if max_words is not None:
            check_option("max-words", max_words, 1)
        numbers: Dict[str, int] = {}
        spelled = (word.lower() if lowercase else word for word in text.words)
        # With `lowercase`, words that differ only in case become one word.
        merged = numpy.fromiter(
            (numbers.setdefault(word, len(numbers)) for word in spelled),
            numpy.int64,
            len(text.words),
        )
        counts = numpy.bincount(merged, weights=text.counts).astype(numpy.int64)
        frequent = [word for word, count in zip(numbers, counts.tolist()) if count >= min_count]
        kept = numpy.array([numbers[word] for word in sorted(_writable(frequent))], numpy.int64)
        if len(kept) == 0:
            raise ConfigurationError(
                f"expected words that occur --min-count {min_count} times, but there are none: the "
                f"most frequent one occurs {counts.max()} times"
            )
        kept = kept[numpy.argsort(-counts[kept], kind="stable")][:max_words]
        spellings = list(numbers)
        self.words: List[str] = [spellings[number] for number in kept.tolist()]
        """The words that get vectors, the most frequent first."""
        self.counts: numpy.ndarray = counts[kept]
        """Shape `(words,)`: the number of tokens of each word."""
        self.num_tokens = int(self.counts.sum())
        """The number of tokens of these words."""
        ids = numpy.full(len(numbers), -1, dtype=numpy.int32)
        ids[kept] = numpy.arange(len(kept), dtype=numpy.int32)
        self._text, self._ids = text, ids[merged]
        logger.info(
            "%d of %d distinct words get vectors: %.2f %% of %d tokens",
            len(kept),
            len(numbers),
            100 * self.num_tokens / max(1, len(text.tokens)),
            len(text.tokens),
        )

    def blocks(self) -> Iterator[Block]:
        """Yields the text in blocks, from its first sentence to its last."""
        starts = self._text.sentence_starts
        first, end = 0, len(starts) - 1
        while first < end:
            fitting = numpy.searchsorted(starts, starts[first] + TOKENS_AT_ONCE, side="right") - 1
            last = max(int(fitting), first + 1)
            tokens = self._ids[self._text.tokens[starts[first] : starts[last]]]
            lengths = numpy.diff(starts[first : last + 1])
            sentences = numpy.repeat(numpy.arange(last - first), lengths)
            has_vector = tokens >= 0
            yield Block(tokens[has_vector], sentences[has_vector])
            first = last


def _writable(words: List[str]) -> List[str]:
    """Returns the words that a file of vectors can hold, and warns about the others."""
    left_out = [word for word in words if not is_writable(word)]
    if left_out:
        logger.warning(
            "%d words hold white space, which separates words and numbers in a file of vectors, or "
            "halves of surrogate pairs, which no file can hold. They get no vectors: %s",
            len(left_out),
            ", ".join(map(repr, left_out[:_NAMED_AT_MOST]))
            + (", …" if len(left_out) > _NAMED_AT_MOST else ""),
        )
    return [word for word in words if is_writable(word)]


class VectorMethod(ABC):
    """Learns one vector a word from the words that it stands beside. Abstract."""

    @abstractmethod
    def vectors_of(self, text: VectorText) -> numpy.ndarray:
        """
        # Parameters

        text : `VectorText`
            The text to learn from.

        # Returns

        `numpy.ndarray`
            Shape `(words, dim)`, of float32: a vector for each of `text.words`.

        # Raises

        ConfigurationError
            If the text is too small for the settings.
        """
