"""A text as numbers of its words."""

from array import array
from os import PathLike
from typing import Dict, Iterable, Iterator, List, NamedTuple, Sequence, Union

import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from allennlp.data import DatasetReader, Field, Instance
from allennlp.data.fields import ListField, TextField

from elmo_scratch.data import PreparedCorpus
from elmo_scratch.data.corpus import DataPath, is_table, list_shards


class NumberedText(NamedTuple):
    """
    A text that can be read again and again.

    # Parameters

    words : `Sequence[str]`
        The distinct words.
    counts : `numpy.ndarray`
        Shape `(words,)`: how often each occurs.
    tokens : `numpy.ndarray`
        Shape `(tokens,)`: for each token the place of its word in `words`.
    sentence_starts : `numpy.ndarray`
        Shape `(sentences + 1,)`: where each sentence begins in `tokens`.
    """

    words: Sequence[str]
    counts: numpy.ndarray
    tokens: numpy.ndarray
    sentence_starts: numpy.ndarray

    @classmethod
    def of_corpus(cls, data_path: DataPath) -> "NumberedText":
        """
        Text files as pre-training reads them, prepared once for both. They stay on the disk.

        # Parameters

        data_path : `DataPath`
            One sentence a line, words between spaces, plain or gzip: as in `list_shards`.

        # Raises

        ConfigurationError
            If there is no such text, or a file is not what it should be.
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
        The tokens of all text fields that a reader makes, each field a sentence. They are kept in
        memory, in four bytes a token.

        # Parameters

        reader : `DatasetReader`
            Any.
        data_path : `Union[str, PathLike]`
            What it reads.

        # Raises

        ConfigurationError
            If it can't be read, or holds no token.
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
    """What a reader reads, with errors that name the text."""
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
    """The words of each text field."""
    for instance in instances:
        for field in instance.fields.values():
            yield from _sentences_of(field)


def _sentences_of(field: Field) -> Iterator[List[str]]:
    """The words of a text field, or of those in a list."""
    if isinstance(field, TextField):
        yield [token.text for token in field.tokens if token.text]
    elif isinstance(field, ListField):
        for one in field.field_list:
            yield from _sentences_of(one)
