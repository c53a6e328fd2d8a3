"""Converts the text of shards to files of word numbers, and counts and logs what they hold."""

import json
import logging
from functools import partial
from itertools import chain
from pathlib import Path
from typing import (
    BinaryIO,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from allennlp.data.tokenizers import Tokenizer

from elmo_scratch.alphabet import MAX_CHARACTERS_PER_TOKEN
from elmo_scratch.data.corpus.shards import first_names, shard_blocks
from elmo_scratch.data.lines import line_tokens

logger = logging.getLogger(__name__)

ARCHIVED_AUDIT = ".elmo_scratch-audit.json"
"""
The file beside a vocabulary that AllenNLP packs into the archive of the training, and takes for no
namespace: the figures of the corpus that the words were counted in.
"""


class CorpusAudit(NamedTuple):
    """
    The figures of a prepared corpus.

    # Parameters

    tokens : `int`
        Words of the text, repetitions included.
    sentences : `int`
        Lines that hold a token.
    distinct_words : `int`
        Words of the text, each counted once.
    cut_share : `float`
        The share of the tokens that are too long for the 50 characters of the released models.
    duplicate_lines : `int`
        Sentences whose line equals an earlier one.
    blank_lines : `int`
        Lines without a token, which were skipped.
    bytes_read : `int`
        The size of the shards on the disk.
    unknown_share : `float`, optional (default = `None`)
        The share of the tokens whose words the vocabulary lacks. `None` if there is none yet.
    empty_shards : `Sequence[str]`, optional (default = `()`)
        The names of the shards without a token. They are not written to the file, because equal
        texts with other names share one prepared folder.
    """

    tokens: int
    sentences: int
    distinct_words: int
    cut_share: float
    duplicate_lines: int
    blank_lines: int
    bytes_read: int
    unknown_share: Optional[float] = None
    empty_shards: Sequence[str] = ()

    def describe(self) -> str:
        """The figures in one line, for a log."""
        parts = [
            f"{self.tokens:,} tokens in {self.sentences:,} sentences",
            f"{self.distinct_words:,} distinct words",
            f"{self.cut_share:.4%} of the tokens cut at 50 characters",
            f"{self.duplicate_lines:,} duplicate lines",
            f"{self.blank_lines:,} blank lines",
            f"{self.bytes_read:,} bytes read",
        ]
        if self.unknown_share is not None:
            parts.append(f"{self.unknown_share:.4%} of the tokens out of vocabulary")
        if self.empty_shards:
            parts.append(f"empty: {', '.join(self.empty_shards)}")
        return "; ".join(parts)

    def write(self, path: Path) -> None:
        """Writes the figures as JSON, without names."""
        figures = self._asdict()
        del figures["empty_shards"]
        path.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")

    @classmethod
    def read(cls, path: Path) -> "CorpusAudit":
        """Reads the figures that `write` wrote."""
        return cls(**json.loads(path.read_text("utf-8")))


MUCH = 0.2
"""With a larger share of unknown tokens the vocabulary probably belongs to another text."""


def log_audit(audit: CorpusAudit, name: str) -> None:
    """
    Logs the audit of the text `name`, and warns if many tokens are unknown: on a text of unknown
    words a language model soon reaches a good perplexity without learning anything.
    """
    logger.info("%s: %s", name, audit.describe())
    if audit.unknown_share is not None and audit.unknown_share > MUCH:
        logger.warning(
            "%.0f%% of the tokens of %s are not in the vocabulary. Were its words counted in "
            "another text, split by another tokenizer, or in lower case?",
            100 * audit.unknown_share,
            name,
        )


_NUMBERS_AT_ONCE = 2**22


def array_parts(path: Path, dtype: str) -> Iterator[numpy.ndarray]:
    """Reads a file of numbers in parts, each of shape `(numbers,)`."""
    with open(path, "rb") as file:
        while (part := numpy.fromfile(file, dtype, _NUMBERS_AT_ONCE)).size:
            yield part


def count_numbers(path: Path, dtype: str, size: int) -> numpy.ndarray:
    """Counts how often each number below `size` occurs in a file. Shape `(size,)`."""
    counts = numpy.zeros(size, dtype=numpy.int64)
    for part in _shown(path, dtype, "counting words"):
        counts += numpy.bincount(part, minlength=size)
    return counts


def replace_numbers(path: Path, dtype: str, table: numpy.ndarray) -> None:
    """
    Replaces each number of a file in place by its entry in `table`, shape `(numbers,)`, of type
    `dtype`.
    """
    with open(path, "r+b") as file:
        for part in _shown(path, dtype, "numbering words"):
            file.write(table[part].tobytes())


def count_repeats(path: Path, dtype: str) -> int:
    """
    Counts the numbers in a file that equal an earlier one. They must be unsigned and evenly spread,
    such as hashes.
    """
    total = path.stat().st_size // numpy.dtype(dtype).itemsize
    # Equal numbers fall into the same group; the groups are counted one after the other.
    num_groups = -(-total // _NUMBERS_AT_ONCE)
    repeats = 0
    for group in Tqdm.tqdm(range(num_groups), desc="finding repeated lines", delay=1):
        members = numpy.concatenate(
            [part[part % num_groups == group] for part in array_parts(path, dtype)]
        )
        members.sort()
        repeats += int((members[1:] == members[:-1]).sum())
    return repeats


def _shown(path: Path, dtype: str, what: str) -> Iterator[numpy.ndarray]:
    """Yields the parts of `array_parts` under a progress bar, shown only if it takes long."""
    size = path.stat().st_size
    with Tqdm.tqdm(total=size, desc=what, unit="B", unit_scale=True, delay=1) as progress:
        for part in array_parts(path, dtype):
            yield part
            progress.update(part.nbytes)


TEXT, STARTS, COUNTS = "words.bin", "word_starts.bin", "word_counts.bin"
_WORDS_AT_ONCE = 2**16


class WordTable(Sequence[str]):
    """
    The distinct words of a corpus, by falling frequency; words of equal frequency are in
    alphabetical order. They lie in memory-mapped files; a word becomes a string when it is asked
    for.

    # Parameters

    folder : `Path`
        The folder that `write_words` wrote to.
    """

    def __init__(self, folder: Path) -> None:
        self.text = numpy.memmap(folder / TEXT, dtype=numpy.uint8, mode="r")
        """The UTF-8 forms of all words, end to end."""
        self.starts = numpy.memmap(folder / STARTS, dtype="<i8", mode="r")
        """Shape `(words + 1,)`: the offset of each word in `text`."""
        self.counts = numpy.memmap(folder / COUNTS, dtype="<i8", mode="r")
        """Shape `(words,)`: how often each word occurs."""

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, number: int) -> str:  # type: ignore[override]
        if not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} words, but number {number} was asked for")
        number %= len(self)
        return self.text[self.starts[number] : self.starts[number + 1]].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _WORDS_AT_ONCE):
            starts = self.starts[first : first + _WORDS_AT_ONCE + 1].tolist()
            text = self.text[starts[0] : starts[-1]].tobytes()
            for start, end in zip(starts, starts[1:]):
                yield text[start - starts[0] : end - starts[0]].decode("utf-8")

    def lengths(self) -> numpy.ndarray:
        """Shape `(words,)`: the bytes of each word in UTF-8."""
        return numpy.diff(self.starts)


def write_words(words: List[str], counts: numpy.ndarray, folder: Path) -> None:
    """
    Writes the files of a `WordTable`: distinct words in their order, none empty, and their counts,
    shape `(words,)`.
    """
    end = 0
    with open(folder / TEXT, "wb") as text, open(folder / STARTS, "wb") as starts:
        starts.write(numpy.zeros(1, dtype="<i8").tobytes())
        for first in range(0, len(words), _WORDS_AT_ONCE):
            encoded = [word.encode("utf-8") for word in words[first : first + _WORDS_AT_ONCE]]
            text.write(b"".join(encoded))
            ends = end + numpy.cumsum([len(word) for word in encoded], dtype="<i8")
            starts.write(ends.tobytes())
            end = int(ends[-1])
    with open(folder / COUNTS, "wb") as file:
        file.write(counts.astype("<i8").tobytes())


TOKENS, SENTENCE_STARTS, SHARD_STARTS = "tokens.bin", "sentence_starts.bin", "shard_starts.bin"
AUDIT = "audit.json"
TOKEN_TYPE, START_TYPE = "<u4", "<i8"

_LINE_HASHES, _HASH_TYPE = "line_hashes.bin", "<u8"

Split = Callable[[List[str]], List[List[str]]]
"""Splits lines into lists of words; the list of a blank line is empty."""


class _Numbers(Dict[str, int]):
    """Numbers words in the order in which they first occur."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class _Counts(NamedTuple):
    """The counts over all shards."""

    shard_starts: List[int]
    tokens: int
    sentences: int
    blank_lines: int
    bytes_read: int


def prepare_corpus(
    shards: List[Path], tokenizer: Optional[Tokenizer], max_tokens: Optional[int], folder: Path
) -> None:
    """
    Writes the files that `PreparedCorpus` reads into an empty folder. Memory holds the distinct
    words and no more of the corpus than a few thousand lines.

    The shards are text files, one sentence a line. `tokenizer` splits sentences; `None` splits at
    white space. Tokens of a sentence after the first `max_tokens` are dropped; `None` keeps all.

    Raises `ConfigurationError` if a shard can't be read or is not UTF-8, or none holds a token.
    """
    numbers = _Numbers()
    counted = _number_shards(shards, _splitter(tokenizer, max_tokens), numbers, folder)
    if counted.tokens == 0:
        names = first_names(shards)
        raise ConfigurationError(f"{names}: expected sentences, but no line holds a token")
    duplicate_lines = count_repeats(folder / _LINE_HASHES, _HASH_TYPE)
    (folder / _LINE_HASHES).unlink()
    counts = count_numbers(folder / TOKENS, TOKEN_TYPE, len(numbers))
    words, order = _by_frequency(numbers, counts)
    # The largest thing in memory is freed as soon as possible.
    numbers.clear()
    write_words(words, counts[order], folder)
    rows = numpy.empty(len(words), dtype=TOKEN_TYPE)
    rows[order] = numpy.arange(len(words), dtype=TOKEN_TYPE)
    del words
    replace_numbers(folder / TOKENS, TOKEN_TYPE, rows)
    starts = counted.shard_starts
    (folder / SHARD_STARTS).write_bytes(numpy.array(starts, dtype=START_TYPE).tobytes())
    CorpusAudit(
        tokens=counted.tokens,
        sentences=counted.sentences,
        distinct_words=len(rows),
        cut_share=_count_cut(WordTable(folder)) / counted.tokens,
        duplicate_lines=duplicate_lines,
        blank_lines=counted.blank_lines,
        bytes_read=counted.bytes_read,
    ).write(folder / AUDIT)


def _splitter(tokenizer: Optional[Tokenizer], max_tokens: Optional[int]) -> Split:
    split_line: Callable[[str], List[str]] = str.split
    if tokenizer is not None:
        split_line = partial(_words, tokenizer)
    if max_tokens is None:
        return lambda lines: [split_line(line) for line in lines]
    return lambda lines: [split_line(line)[:max_tokens] for line in lines]


def _words(tokenizer: Tokenizer, line: str) -> List[str]:
    return [token.ensure_text() for token in line_tokens(tokenizer, line)]


def _number_shards(
    shards: List[Path], split: Split, numbers: Dict[str, int], folder: Path
) -> _Counts:
    """
    Writes the numbers of all tokens, in order of first occurrence, and the starts of sentences.
    """
    shard_starts = [0]
    num_tokens = blank_lines = bytes_read = num_sentences = 0
    total = sum(shard.stat().st_size for shard in shards)
    with (
        open(folder / TOKENS, "wb") as tokens,
        open(folder / SENTENCE_STARTS, "wb") as sentence_starts,
        open(folder / _LINE_HASHES, "wb") as line_hashes,
        Tqdm.tqdm(total=total, unit="B", unit_scale=True, desc="preparing corpus") as progress,
    ):
        sentence_starts.write(numpy.zeros(1, dtype=START_TYPE).tobytes())
        for shard in shards:
            for text in shard_blocks(shard, progress.update):
                lines = text.split("\n")
                if not lines[-1]:
                    lines.pop()
                lengths = _write_block(lines, split(lines), numbers, tokens, line_hashes)
                ends = num_tokens + numpy.cumsum(lengths, dtype=START_TYPE)
                sentence_starts.write(ends.tobytes())
                num_tokens += int(lengths.sum())
                num_sentences += len(lengths)
                blank_lines += len(lines) - len(lengths)
            bytes_read += shard.stat().st_size
            shard_starts.append(num_sentences)
    return _Counts(shard_starts, num_tokens, num_sentences, blank_lines, bytes_read)


def _write_block(
    lines: List[str],
    sentences: List[List[str]],
    numbers: Dict[str, int],
    tokens: BinaryIO,
    line_hashes: BinaryIO,
) -> numpy.ndarray:
    """Writes tokens and line hashes; returns the lengths of the sentences that aren't blank."""
    lengths = numpy.fromiter(map(len, sentences), dtype=numpy.int64, count=len(sentences))
    tokens.write(_numbered(sentences, numbers, int(lengths.sum())).tobytes())
    # Python's own hashes have 64 bits; two different lines of a corpus hardly ever share one.
    hashes = numpy.fromiter(map(hash, lines), dtype=numpy.int64, count=len(lines))
    line_hashes.write(hashes[lengths > 0].tobytes())
    return lengths[lengths > 0]


def _numbered(
    sentences: Iterable[List[str]], numbers: Dict[str, int], num_tokens: int
) -> numpy.ndarray:
    """The numbers of all words, shape `(num_tokens,)`."""
    return numpy.fromiter(
        map(numbers.__getitem__, chain.from_iterable(sentences)), TOKEN_TYPE, num_tokens
    )


def _by_frequency(
    numbers: Dict[str, int], counts: numpy.ndarray
) -> Tuple[List[str], numpy.ndarray]:
    """The words in the order of a `WordTable`, and the numbers that they had before."""
    alphabetical = sorted(numbers)
    before = numpy.fromiter(map(numbers.__getitem__, alphabetical), numpy.int64, len(numbers))
    order = numpy.argsort(-counts[before], kind="stable")
    return [alphabetical[place] for place in order.tolist()], before[order]


def _count_cut(words: WordTable) -> int:
    """How many tokens are longer than the bytes that the released models have room for."""
    room = MAX_CHARACTERS_PER_TOKEN - 2
    return int(words.counts[words.lengths() > room].sum())
