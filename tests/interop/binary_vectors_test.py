import gzip
from pathlib import Path

import numpy
import pytest
from allennlp.common.checks import ConfigurationError
from gensim.models import KeyedVectors

from elmo_scratch.interop.static_vectors import (
    binary_vectors,
    is_binary,
    read_static_vectors,
    write_static_vectors,
)

NAN = numpy.array([0, numpy.nan], numpy.float32)
WORDS = ["</s>", "naïve", "日本", "New_York", "x"]
VECTORS = numpy.random.default_rng(3).standard_normal((5, 7)).astype(numpy.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of gensim's."""
    vectors = KeyedVectors(7)
    vectors.add_vectors(WORDS, VECTORS)
    vectors.save_word2vec_format(str(tmp_path / "vectors.bin"), binary=True)
    return tmp_path / "vectors.bin"


def as_word2vec_writes(path: Path) -> None:
    """The same file with a line feed after each vector."""
    rows = [word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(WORDS, VECTORS)]
    path.write_bytes(b"5 7\n" + b"".join(rows))


@pytest.mark.parametrize("form", ["gensim", "word2vec", "gzip"])
def test_words_and_vectors_are_read_to_the_bit(form: str, path: Path) -> None:
    if form == "word2vec":
        as_word2vec_writes(path)
    if form == "gzip":
        path.write_bytes(gzip.compress(path.read_bytes()))
    found = read_static_vectors(path)
    assert found.words == WORDS and numpy.array_equal(found.vectors, VECTORS)
    some = read_static_vectors(path, ["x", "日本", "absent"])
    assert some.words == ["日本", "x"] and numpy.array_equal(some.vectors, VECTORS[[2, 4]])


def test_a_number_that_is_not_finite_is_an_error_with_its_word(path: Path) -> None:
    path.write_bytes(b"2 2\n" + b"a " + bytes(8) + b"b " + NAN.tobytes())
    with pytest.raises(ConfigurationError, match="vectors.bin, word 2: expected numbers, but one"):
        read_static_vectors(path)


def test_vectors_over_more_than_a_block_are_read(path: Path) -> None:
    vectors = KeyedVectors(300)
    numbers = numpy.random.default_rng(4).standard_normal((3000, 300)).astype(numpy.float32)
    vectors.add_vectors([f"word{row}" for row in range(3000)], numbers)
    vectors.save_word2vec_format(str(path), binary=True)
    assert numpy.array_equal(read_static_vectors(path).vectors, numbers)


def test_text_is_told_apart(tmp_path: Path, path: Path) -> None:
    write_static_vectors([*WORDS[:4], "a\x08b"], VECTORS, tmp_path / "vectors.txt")
    assert is_binary(path) and not is_binary(tmp_path / "vectors.txt")
    (tmp_path / "empty").touch()
    assert not is_binary(tmp_path / "empty") and not is_binary(tmp_path / "gone")


@pytest.mark.parametrize(
    "content, message",
    [
        (lambda whole: whole[:-1], "vectors.bin, word 5: expected 5 words with 7 numbers each"),
        (lambda whole: whole[:50], "vectors.bin, word 2: expected 5 words"),
        (lambda whole: whole + b"y", "vectors.bin: expected 5 words .* but more follows"),
        (lambda whole: b"9" * 12 + whole[1:], "word 6: expected 999999999999 words with 7"),
        (
            lambda whole: whole.replace(b" 7", b" 9999999"),
            "word 1: expected 5 words with 9999999",
        ),
        (lambda whole: whole.replace("naïve".encode(), b"na\xefve"), "word 2: expected UTF-8"),
        (lambda whole: gzip.compress(whole)[:-9], "vectors.bin: can't be read .Compressed"),
    ],
)
def test_a_damaged_file_is_an_error_that_names_the_word(
    content: object, message: str, path: Path
) -> None:
    assert callable(content)
    path.write_bytes(content(path.read_bytes()))
    with pytest.raises(ConfigurationError, match=message):
        read_static_vectors(path)


def test_a_file_without_sizes_is_an_error(path: Path) -> None:
    path.write_bytes(b"five seven\n")
    with pytest.raises(ConfigurationError, match="the number of words and their size first"):
        list(binary_vectors(path))
