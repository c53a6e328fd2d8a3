"""
Reads and writes static word vectors in word2vec's text format, a word and its numbers a line, and
reads its binary format.
"""

import gzip
import io
import logging
import lzma
import re
import tarfile
import zipfile
import zlib
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import (
    BinaryIO,
    Collection,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
    cast,
)

import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.modules.token_embedders.embedding import EmbeddingsTextFile

from elmo_scratch.data.lines import damage_told, unpacked
from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.files.paths import resolve_path

logger = logging.getLogger(__name__)

_SHOWN_AT_MOST = 40

_OTHER_COMPRESSED = (".bz2", ".lz4", ".lzma", ".tar", ".tgz", ".xz", ".zip", ".zst")
"""Suffixes that AllenNLP, gensim or a reader would decompress, but the writer doesn't compress."""


_BYTE_ORDER_MARK = "\ufeff".encode("utf-8").decode("latin-1")
"""What some editors begin a file with, each character for a byte."""

_SIZES = re.compile("([0-9]{1,12}) ([0-9]{1,7})")
"""The first line of word2vec: the number of words, and the size of a vector."""

_LONGEST_SIZES = 64
"""Bytes of that line."""

_UNREADABLE = (
    EOFError,
    OSError,
    ValueError,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
"""The errors of opening and decompressing a file that is not what its name says."""


class StaticVectors(NamedTuple):
    """The words in the order of the file, and their vectors, float32 of shape `(words, dim)`."""

    words: List[str]
    vectors: numpy.ndarray


def is_writable(word: str) -> bool:
    """Whether every reader of the format gets the word back unchanged: white space would end it."""
    is_text = word.encode("utf-8", "ignore").decode("utf-8") == word
    return is_text and word.split() == [word]


def check_name(path: Union[str, PathLike]) -> None:
    """
    Checks a file name before the work starts. Raises `ConfigurationError` if readers would take a
    file of this name for one that is compressed, but not by gzip.
    """
    suffix = Path(path).suffix.lower()
    if suffix in _OTHER_COMPRESSED:
        raise ConfigurationError(
            f"{path}: the file would not be compressed as {suffix} says. Choose a name that ends "
            "in .txt, or in .gz for a compressed file."
        )


def write_static_vectors(
    words: Sequence[str], vectors: numpy.ndarray, path: Union[str, PathLike]
) -> None:
    """
    Writes a line with the number of words and the size of a vector, and then a line a word. Numbers
    have as many digits as it takes to read the same float32 back. The file appears whole or not at
    all.

    # Parameters

    words : `Sequence[str]`
        Distinct words.
    vectors : `numpy.ndarray`
        Shape `(words, dim)`, of float32.
    path : `Union[str, PathLike]`
        The output file; the text is compressed if the name ends in `.gz`.

    # Raises

    ConfigurationError
        If the name is that of a file compressed otherwise.
    ValueError
        If a word is not writable or is there twice, or there are not as many vectors as words.
    """
    path = Path(path)
    check_name(path)
    if vectors.ndim != 2 or len(vectors) != len(words):
        raise ValueError(f"expected {len(words)} vectors, but got an array of {vectors.shape}")
    for word in words:
        if not is_writable(word):
            raise ValueError(f"expected words of UTF-8 text without white space, but got {word!r}")
    if len(set(words)) != len(words):
        raise ValueError("expected no word twice")
    line = " ".join(["%s", *["%.9g"] * vectors.shape[1]]) + "\n"
    with ExitStack() as files:
        part = files.enter_context(atomic_write(path))
        raw: BinaryIO = files.enter_context(open(part, "wb"))
        if path.suffix.lower() == ".gz":
            # Without a time stamp the same vectors make the same file.
            packed = files.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
            raw = cast(BinaryIO, packed)
        file = files.enter_context(io.TextIOWrapper(raw, encoding="utf-8", newline="\n"))
        file.write(f"{len(words)} {vectors.shape[1]}\n")
        file.writelines(line % (word, *vector.tolist()) for word, vector in zip(words, vectors))


def read_static_vectors(
    path: Union[str, PathLike], words: Optional[Collection[str]] = None
) -> StaticVectors:
    """
    Reads static vectors of all words, or of some.

    # Parameters

    path : `Union[str, PathLike]`
        A text file, plain or compressed, as AllenNLP's embedder `embedding` reads it, whose first
        line may tell the number of words and the size of a vector, or not; or a binary file of
        word2vec's, plain or compressed; or the address of one of them.
    words : `Collection[str]`, optional (default = `None`)
        Read only these words; `None` reads all.

    # Returns

    `StaticVectors`
        The words that are in the file. If a word is there twice, its last vector counts.

    # Raises

    ConfigurationError
        If there is no such file, it is empty, or a line is not a word and as many numbers as in the
        other lines, or a number is NaN or infinite; the message names the line. If a binary file
        has other words than it says. A text file that has others is read, with a warning.
    """
    wanted = None if words is None else {_as_bytes_read(word) for word in words}
    if is_binary(path):
        return _read_binary(path, wanted)
    found: Dict[str, numpy.ndarray] = {}
    dim = num_words = 0
    for number, line in _numbered_lines(path):
        num_words += 1
        if not dim:
            dim = line.count(" ")
        elif wanted is not None and line.split(" ", 1)[0] not in wanted:
            continue
        # Split from the end: words in other programs' files may hold spaces.
        word, *numbers = line.rsplit(" ", dim)
        try:
            # What float32 has no room for becomes infinite, which is told below.
            with numpy.errstate(over="ignore"):
                vector = numpy.array(numbers, dtype=numpy.float32)
        except ValueError:
            vector = numpy.zeros(0, dtype=numpy.float32)
        if not dim or len(vector) != dim:
            shown = line.encode("latin-1").decode("utf-8", "replace")[:_SHOWN_AT_MOST]
            raise ConfigurationError(
                f"{path}, line {number}: expected a word and {dim or 'its'} numbers, but got "
                f"{shown!r}"
            )
        check_finite(vector, f"{path}, line {number}")
        if wanted is None or word in wanted:
            found[_decoded(word, path, f"line {number}")] = vector
    if not dim:
        raise ConfigurationError(f"{path}: expected words and their vectors, but found none")
    said = _said_sizes(path)
    if said not in (None, (num_words, dim)):
        logger.warning(
            "%s: its first line says %d words and vectors of %d numbers, but it has %d and %d. Was "
            "it copied to its end?",
            path,
            *said,
            num_words,
            dim,
        )
    rows = numpy.array(list(found.values()), dtype=numpy.float32).reshape(-1, dim)
    return StaticVectors(list(found), rows)


def _said_sizes(path: Union[str, PathLike]) -> Optional[Tuple[int, int]]:
    """
    The number of words and the size of a vector that the first line of a text file tells; `None` if
    it tells none, or the file is one of several in an archive.
    """
    try:
        with open(resolve_path(path), "rb") as file, damage_told(str(path)):
            line = unpacked(file).readline(_LONGEST_SIZES).decode("latin-1")
    except (OSError, ConfigurationError):
        return None
    sizes = _SIZES.fullmatch(line.removeprefix(_BYTE_ORDER_MARK).rstrip(" \r\n"))
    return None if sizes is None else (int(sizes[1]), int(sizes[2]))


def _read_binary(path: Union[str, PathLike], wanted: Optional[Collection[str]]) -> StaticVectors:
    """The vectors of all words of a binary file, or of those that are `wanted`, as bytes read."""
    found: Dict[str, numpy.ndarray] = {}
    dim = 0
    for number, (raw, vector) in enumerate(binary_vectors(path), start=1):
        word, dim = raw.decode("latin-1"), len(vector)
        if wanted is None or word in wanted:
            found[_decoded(word, path, f"word {number}")] = vector.copy()
    rows = numpy.array(list(found.values()), dtype=numpy.float32).reshape(-1, dim)
    return StaticVectors(list(found), rows)


def _numbered_lines(path: Union[str, PathLike]) -> Iterator[Tuple[int, str]]:
    """
    Yields the lines with vectors and their numbers. Each character stands for a byte of the file:
    only words that are kept need to be valid text.
    """
    try:
        with EmbeddingsTextFile(str(path), encoding="latin-1") as file:
            for number, line in enumerate(file, start=2 if file.num_tokens else 1):
                line = line.rstrip(" \r\n")
                if number == 1:
                    line = line.removeprefix(_BYTE_ORDER_MARK)
                    # AllenNLP doesn't know sizes behind a mark or before a space.
                    if _SIZES.fullmatch(line):
                        continue
                yield number, line
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: there is no such file") from None
    except StopIteration:
        raise ConfigurationError(f"{path}: expected word vectors, but the file is empty") from None
    except IndexError:  # AllenNLP takes the first file of an archive.
        raise ConfigurationError(
            f"{path}: expected word vectors, but it is an archive without a file"
        ) from None
    except _UNREADABLE as error:
        raise ConfigurationError(f"{path}: can't be read ({error})") from None


def _as_bytes_read(word: str) -> str:
    """The word as it looks in a file in which each character stands for a byte."""
    return word.encode("utf-8", "replace").decode("latin-1")


def _decoded(word: str, path: Union[str, PathLike], place: str) -> str:
    """The inverse of `_as_bytes_read`. Raises `ConfigurationError` if the word is not UTF-8."""
    try:
        return word.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigurationError(
            f"{path}, {place}: expected UTF-8 text, but the word is not. Convert the file to "
            "UTF-8 first."
        ) from None


_BINARY_SIZES = re.compile(rb"([0-9]{1,12}) ([0-9]{1,7})[ \r]*\n")
"""The first line: the number of words, and the size of a vector."""

_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1f]")
"""Some 7 % of the bytes of numbers, and hardly any of a text."""

READ_AT_ONCE, LONGEST_WORD = 2**20, 2**16
"""Bytes."""


def is_binary(path: Union[str, PathLike]) -> bool:
    """
    Whether a file, plain or compressed, is in the binary format, by its beginning. What can't be
    read is not.
    """
    try:
        with open(resolve_path(path), "rb") as file, damage_told(str(path)):
            text = unpacked(file)
            sizes = _BINARY_SIZES.fullmatch(text.readline(LONGEST_WORD))
            start = text.read(LONGEST_WORD)
    except (OSError, ConfigurationError):
        return False
    return sizes is not None and 100 * len(_CONTROLS.findall(start)) > len(start)


def binary_vectors(path: Union[str, PathLike]) -> Iterator[Tuple[bytes, numpy.ndarray]]:
    """
    Yields the words of a binary file, as bytes, and their vectors, float32 of shape `(dim,)`.
    Raises `ConfigurationError` if the file is damaged, has no words or no numbers, has fewer words
    than it says, or more, or if a number is NaN or infinite.
    """
    with open(resolve_path(path), "rb") as file, damage_told(str(path)):
        text = unpacked(file)
        sizes = _BINARY_SIZES.fullmatch(text.readline(LONGEST_WORD))
        if sizes is None:
            raise ConfigurationError(f"{path}: expected the number of words and their size first")
        num_words, dim = int(sizes[1]), int(sizes[2])
        if num_words == 0 or dim == 0:
            raise ConfigurationError(f"{path}: expected words and their vectors, but found none")
        yield from _vectors(text, str(path), num_words, dim)


def _vectors(
    text: BinaryIO, path: str, num_words: int, dim: int
) -> Iterator[Tuple[bytes, numpy.ndarray]]:
    size = 4 * dim
    block, place = b"", 0
    for number in range(1, num_words + 1):
        space = block.find(b" ", place)
        while space < 0 or space + 1 + size > len(block):
            more = text.read(READ_AT_ONCE)
            if not more or (space < 0 and len(block) - place > LONGEST_WORD):
                raise ConfigurationError(
                    f"{path}, word {number}: expected {num_words} words with {dim} numbers each, "
                    "by its first line, but no such word follows. Is the file whole?"
                )
            block, place = block[place:] + more, 0
            space = block.find(b" ", place)
        # word2vec itself ends each vector with a line feed, gensim doesn't.
        word = block[place:space].lstrip(b"\n")
        vector = numpy.frombuffer(block, "<f4", dim, space + 1)
        check_finite(vector, f"{path}, word {number}")
        yield word, vector
        place = space + 1 + size
    if (block[place:] + text.read(LONGEST_WORD)).strip():
        raise ConfigurationError(
            f"{path}: expected {num_words} words with {dim} numbers each, by its first line, but "
            "more follows"
        )


def check_finite(vector: numpy.ndarray, place: str) -> None:
    """Raises `ConfigurationError` if a number of the vector at this place is NaN or infinite."""
    if not numpy.isfinite(vector).all():
        number = vector[~numpy.isfinite(vector)][0]
        raise ConfigurationError(
            f"{place}: expected numbers, but one is {number}. A training that starts from it would "
            "diverge: leave the word out, or make the vectors anew"
        )
