import gzip
import os
import tarfile
from pathlib import Path
from typing import List, Tuple

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.corpus import shards as module
from elmo_scratch.data.corpus.shards import shard_blocks


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_SIZE", 7)


def read(path: Path) -> Tuple[List[str], int]:
    """The blocks, and how many bytes were reported."""
    reported: List[int] = []
    return list(shard_blocks(path, reported.append)), sum(reported)


@pytest.mark.parametrize("ends", ["\n", ""])
def test_blocks_are_whole_lines_and_together_the_text(tmp_path: Path, ends: str) -> None:
    path = tmp_path / "a.txt"
    text = "one\ntwo words\n\n  \nfünf\u2028\x85\nthe last line" + ends
    path.write_bytes(text.encode("utf-8"))
    blocks, size = read(path)
    assert "".join(blocks) == text
    assert len(blocks) > 2
    assert all(block.endswith("\n") for block in blocks[:-1])
    assert size == path.stat().st_size


def test_all_line_ends_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    for size in range(1, 12):
        path.write_bytes(b"one\r\ntwo\r\rthree\nfour\r\r\nfive\r")
        monkeypatch.setattr(module, "BLOCK_SIZE", size)
        assert "".join(read(path)[0]) == "one\ntwo\n\nthree\nfour\n\nfive\n", size
        # Where the text breaks is told by the same lines.
        path.write_bytes(b"one\r\ntwo\rth\xffree\n")
        with pytest.raises(ConfigurationError, match="line 3: expected UTF-8 text, but byte 3 of"):
            read(path)


def test_gzip_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "no_telling_name"
    path.write_bytes(gzip.compress(b"one\ntwo\n") + gzip.compress("drei\nfünf\n".encode("utf-8")))
    blocks, size = read(path)
    assert "".join(blocks) == "one\ntwo\ndrei\nfünf\n"
    assert size == path.stat().st_size


def test_an_empty_shard_has_no_blocks(tmp_path: Path) -> None:
    for name, content in [("a.txt", b""), ("b.gz", b""), ("c.gz", gzip.compress(b""))]:
        (tmp_path / name).write_bytes(content)
        assert read(tmp_path / name)[0] == []


def test_a_byte_order_mark_is_dropped_at_the_beginning_and_only_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\n\ufefftwo\nthree\n\ufeff\n".encode("utf-8"))
    assert "".join(read(path)[0]) == "one\n\ufefftwo\nthree\n\ufeff\n"


@pytest.mark.parametrize(
    "bad, byte, code",
    [
        (b"ab\xe9c", 3, "e9"),  # Latin-1
        (b"\xed\xa0\x80", 1, "ed"),  # half of a surrogate pair
        (b"a\xc0\x80", 2, "c0"),  # a NUL, overlong
        (b"ab\xc3", 3, "c3"),  # cut within a character
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_bytes_that_are_not_utf8_are_an_error_that_names_line_and_byte(
    bad: bytes, byte: int, code: str, packed: bool, tmp_path: Path
) -> None:
    raw = "ä\n\nsome more text\n".encode("utf-8") + bad
    path = tmp_path / "bad.txt"
    path.write_bytes(gzip.compress(raw) if packed else raw)
    with pytest.raises(ConfigurationError, match=f"bad.txt, line 4: .* byte {byte} .* 0x{code}"):
        read(path)


def test_a_nul_is_a_character(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\0b\n")
    assert read(tmp_path / "a.txt")[0] == ["a\0b\n"]


def test_a_gzip_file_that_was_cut_off_is_an_error_that_names_it(tmp_path: Path) -> None:
    whole = gzip.compress(os.urandom(1000).hex().encode("ascii"))
    path = tmp_path / "cut.gz"
    for size in (5, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ConfigurationError, match="cut.gz: the compressed file is damaged"):
            read(path)


def test_a_gzip_file_with_a_wrong_bit_is_an_error_that_names_it(tmp_path: Path) -> None:
    raw = bytearray(gzip.compress(b"some text\n" * 20))
    raw[len(raw) // 2] ^= 1
    (tmp_path / "bad.gz").write_bytes(raw)
    with pytest.raises(ConfigurationError, match="bad.gz: the compressed file is damaged"):
        read(tmp_path / "bad.gz")


def test_plain_text_under_the_name_of_a_gzip_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_text("plain\n")
    with pytest.raises(ConfigurationError, match="a.gz: expected a gzip file"):
        read(tmp_path / "a.gz")


def test_a_file_that_is_gone_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="gone.txt: cannot be read"):
        read(tmp_path / "gone.txt")


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_tar_archive_is_an_error(form: int, mode: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a b\n")
    with tarfile.open(tmp_path / "tar", mode, format=form) as archive:  # type: ignore[call-overload]
        archive.add(tmp_path / "text.txt")
    with pytest.raises(ConfigurationError, match="tar: expected text, but this is a tar archive"):
        list(shard_blocks(tmp_path / "tar"))


def test_a_word_at_the_place_of_a_sign_of_tar_is_one(tmp_path: Path) -> None:
    text = "a" * 256 + " ustar gustar\n"
    (tmp_path / "text.txt").write_text(text)
    assert list(shard_blocks(tmp_path / "text.txt")) == [text]
