import bz2
import gzip
import io
import logging
import lzma
import zipfile
from pathlib import Path
from typing import Any, Tuple

import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.modules.token_embedders import Embedding, TokenEmbedder
from gensim.models import KeyedVectors

from elmo_scratch.interop.static_vectors import (
    check_name,
    is_writable,
    read_static_vectors,
    write_static_vectors,
)

WORDS = ["the", "naïve", "5", "\u200b", "a\ufeffb", "日本", "<S>", "x"]
VECTORS = (numpy.random.default_rng(0).standard_normal((8, 5)) ** 7).astype(numpy.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    write_static_vectors(WORDS, VECTORS, path)
    return path


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_the_first_line_tells_the_sizes_and_each_other_one_a_vector(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    write_static_vectors(["b", "é"], numpy.array([[0.5, -1], [3, 1e-9]], numpy.float32), path)
    assert path.read_bytes() == "2 2\nb 0.5 -1\né 3 9.99999972e-10\n".encode()


def test_what_is_written_is_read_back_to_the_bit(path: Path) -> None:
    found = read_static_vectors(path)
    assert found.words == WORDS
    assert found.vectors.dtype == numpy.float32
    assert numpy.array_equal(found.vectors, VECTORS)


def test_extreme_numbers_are_read_back_to_the_bit(tmp_path: Path) -> None:
    bits = numpy.random.default_rng(1).integers(0, 2**32, 3000, dtype=numpy.uint32)
    numbers = bits.view(numpy.float32)
    numbers = numbers[numpy.isfinite(numbers)][:2900].reshape(-1, 29)
    write_static_vectors([f"w{row}" for row in range(100)], numbers, tmp_path / "v.txt")
    assert numpy.array_equal(read_static_vectors(tmp_path / "v.txt").vectors, numbers)


def test_the_embedder_of_allennlp_reads_it(path: Path) -> None:
    vocab = Vocabulary()
    for word in [*reversed(WORDS), "other"]:
        vocab.add_token_to_namespace(word)
    params = {"type": "embedding", "embedding_dim": 5, "pretrained_file": str(path)}
    embedder = TokenEmbedder.from_params(Params(params), vocab=vocab)
    assert isinstance(embedder, Embedding)
    ids = torch.tensor([vocab.get_token_index(word) for word in WORDS])
    assert numpy.array_equal(embedder(ids).detach().numpy(), VECTORS)


def test_gensim_reads_it(path: Path) -> None:
    found = KeyedVectors.load_word2vec_format(str(path))
    assert found.index_to_key == WORDS
    assert numpy.array_equal(found.vectors, VECTORS)


def test_what_gensim_writes_is_read(tmp_path: Path) -> None:
    vectors = KeyedVectors(5)
    vectors.add_vectors(WORDS, VECTORS)
    vectors.save_word2vec_format(str(tmp_path / "gensim.txt"))
    found = read_static_vectors(tmp_path / "gensim.txt")
    assert found.words == WORDS
    assert numpy.array_equal(found.vectors, VECTORS)


def test_a_compressed_file_holds_the_same(path: Path, tmp_path: Path) -> None:
    for name in ("1.txt.gz", "2.txt.gz"):
        write_static_vectors(WORDS, VECTORS, tmp_path / name)
    packed = (tmp_path / "1.txt.gz").read_bytes()
    assert packed == (tmp_path / "2.txt.gz").read_bytes()
    assert gzip.decompress(packed) == path.read_bytes()
    assert read_static_vectors(tmp_path / "1.txt.gz").words == WORDS
    assert KeyedVectors.load_word2vec_format(str(tmp_path / "1.txt.gz")).index_to_key == WORDS


def test_a_name_in_capitals_is_compressed_as_allennlp_reads_it(tmp_path: Path) -> None:
    write_static_vectors(WORDS, VECTORS, tmp_path / "V.GZ")
    assert read_static_vectors(tmp_path / "V.GZ").words == WORDS


@pytest.mark.parametrize("name", ["v.xz", "v.txt.BZ2", "v.zip", "v.zst"])
def test_a_name_of_another_compression_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}: the file would not be compressed"):
        write_static_vectors(WORDS, VECTORS, tmp_path / name)
    assert not list(tmp_path.iterdir())
    check_name(tmp_path / "v.xz.txt")


@pytest.mark.parametrize("module", [bz2, lzma])
def test_what_others_compressed_is_read(module: Any, path: Path, tmp_path: Path) -> None:
    packed = tmp_path / {bz2: "v.bz2", lzma: "v.xz"}[module]
    packed.write_bytes(module.compress(path.read_bytes()))
    assert numpy.array_equal(read_static_vectors(packed).vectors, VECTORS)


def test_an_archive_with_one_file_is_read(path: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "v.zip", "w") as archive:
        archive.write(path, "v.txt")
    assert numpy.array_equal(read_static_vectors(tmp_path / "v.zip").vectors, VECTORS)


def test_only_the_words_that_are_asked_for_are_read(path: Path) -> None:
    found = read_static_vectors(path, ["x", "naïve", "none"])
    assert found.words == ["naïve", "x"]
    assert numpy.array_equal(found.vectors, VECTORS[[1, 7]])


def test_the_size_is_known_where_no_word_is_found(path: Path) -> None:
    assert read_static_vectors(path, []).vectors.shape == (0, 5)


def test_other_programs_leave_the_first_line_out_or_put_spaces_into_words(tmp_path: Path) -> None:
    path = written(tmp_path / "v.txt", "the 1 2 ", "at home 3 4", "at 5 6")
    found = read_static_vectors(path)
    assert found.words == ["the", "at home", "at"]
    assert found.vectors.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert read_static_vectors(path, ["at"]).vectors.tolist() == [[5, 6]]


@pytest.mark.parametrize("sizes", [(), ("2 3",)])
def test_a_byte_order_mark_is_dropped(sizes: Tuple[str, ...], tmp_path: Path) -> None:
    first, *others = (*sizes, "a 1 2 3", "b 4 5 6")
    found = read_static_vectors(written(tmp_path / "v.txt", f"\ufeff{first}", *others))
    assert found.words == ["a", "b"]
    assert found.vectors.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e39"])
def test_what_is_not_finite_is_an_error_with_its_line(number: str, tmp_path: Path) -> None:
    path = written(tmp_path / "v.txt", "2 2", "a 1 2", f"b 3 {number}")
    with pytest.raises(ConfigurationError, match="v.txt, line 3: expected numbers, but one is"):
        read_static_vectors(path)


def test_words_that_are_no_text_do_not_matter_unless_they_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(b"3 1\na 1\nb\xe9 2\nc 3\n")
    assert read_static_vectors(path, ["a", "c"]).words == ["a", "c"]
    with pytest.raises(ConfigurationError, match="v.txt, line 3: expected UTF-8"):
        read_static_vectors(path)


@pytest.mark.parametrize(
    "lines, complaint",
    [
        (["2 3", "a 1 2 3", "b 1 2"], "line 3: expected a word and 3 numbers, but got 'b 1 2'"),
        (["a 1 2 3", "é 1 two 3"], "line 2: expected a word and 3 numbers, but got 'é 1 two 3'"),
        (["a 1 2 3", ""], "line 2: expected a word and 3 numbers, but got ''"),
        (["word", "a 1"], "line 1: expected a word and its numbers, but got 'word'"),
        (["The bank rose"], "line 1: expected a word and 2 numbers"),
        (["0 3"], "expected words and their vectors, but found none"),
        ([], "the file is empty"),
    ],
)
def test_what_is_no_vector_is_an_error(lines: list, complaint: str, tmp_path: Path) -> None:
    path = written(tmp_path / "v.txt", *lines)
    with pytest.raises(ConfigurationError) as error:
        read_static_vectors(path)
    assert str(error.value).strip("'\"").startswith(str(path))
    assert complaint in error.value.message


def test_a_file_that_is_missing_or_damaged_is_an_error(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="none.txt: there is no such file"):
        read_static_vectors(tmp_path / "none.txt")
    with pytest.raises(ConfigurationError, match="can't be read"):
        read_static_vectors(tmp_path)
    packed = gzip.compress(path.read_bytes())
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as damaged:
        damaged.writestr("v.txt", "a 1 2\n" * 99)
    for name, content in (
        ("cut.gz", packed[:-20]),
        ("plain.gz", b"a 1 2\n"),
        ("plain.xz", b"a 1 2\n"),
        ("cut.xz", lzma.compress(path.read_bytes())[:-20]),
        ("plain.bz2", b"a 1 2\n"),
        ("damaged.zip", archive.getvalue().replace(b"a 1", b"b 1", 1)),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigurationError, match=f"{name}: can't be read"):
            read_static_vectors(tmp_path / name)


@pytest.mark.parametrize("word", ["", " ", "New York", "a\n", "\xa0", "a\u2028b", "\r", "\ud800"])
def test_a_word_that_would_not_be_read_back_is_an_error(word: str, tmp_path: Path) -> None:
    assert not is_writable(word)
    with pytest.raises(ValueError, match="without white space"):
        write_static_vectors([word], numpy.zeros((1, 2), numpy.float32), tmp_path / "v.txt")
    assert not list(tmp_path.iterdir())


def test_words_and_vectors_must_match(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected 7 vectors, but got an array of .8, 5."):
        write_static_vectors(WORDS[1:], VECTORS, tmp_path / "v.txt")
    with pytest.raises(ValueError, match="no word twice"):
        write_static_vectors(["a", "a"], VECTORS[:2], tmp_path / "v.txt")


def test_an_older_file_stays_if_writing_fails(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_static_vectors(["a", "b"], numpy.array([[1], ["no number"]], object), path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["vectors.txt"]


@pytest.mark.parametrize("sizes", ["3 3", "2 4", "200 300"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_first_line_that_lies_is_told(
    sizes: str, mark: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(f"{mark}{sizes}\na 1 2 3\nb 4 5 6\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert read_static_vectors(path, ["b"]).vectors.tolist() == [[4, 5, 6]]
    words, dim = sizes.split()
    told = f"{path}: its first line says {words} words and vectors of {dim} numbers, but it has 2 "
    assert told in caplog.text


def test_a_first_line_that_is_right_or_missing_is_not_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for sizes in ("2 3\n", "2 3 \r\n", ""):
            (tmp_path / "vectors.txt").write_text(f"{sizes}a 1 2 3\nb 4 5 6\n", encoding="utf-8")
            assert read_static_vectors(tmp_path / "vectors.txt").words == ["a", "b"]
    assert "its first line says" not in caplog.text
