import bz2
import gzip
import io
import lzma
import os
import threading
import zipfile
from pathlib import Path
from typing import List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.lines import check_no_archive, damage_told, unpacked

TEXT = "eins\nfünf\n".encode("utf-8")

each_form = pytest.mark.parametrize("content", [TEXT, gzip.compress(TEXT)], ids=["plain", "packed"])


def lines_of(path: Path) -> List[bytes]:
    with open(path, "rb") as file, damage_told(str(path)):
        return list(unpacked(file))


@each_form
def test_what_is_packed_is_known_by_its_bytes(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    assert lines_of(path) == TEXT.splitlines(keepends=True)


def test_nothing_is_lost_of_a_file_that_is_shorter_than_the_sign(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    for content, lines in [(b"", []), (b"\x1f", [b"\x1f"]), (b"a", [b"a"])]:
        path.write_bytes(content)
        assert lines_of(path) == lines


def zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("text.txt", content)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("bzip2", bz2.compress(TEXT)),
        ("xz", lzma.compress(TEXT)),
        ("zip", zipped(TEXT)),
        ("Zstandard", b"\x28\xb5\x2f\xfd and so on"),
        ("7-Zip", b"7z\xbc\xaf\x27\x1c and so on"),
    ],
)
def test_what_is_packed_otherwise_is_an_error_that_says_how(kind: str, content: bytes) -> None:
    with pytest.raises(ConfigurationError, match=f"a.txt: expected text.* packed by {kind}. Unpac"):
        check_no_archive(content, "a.txt")


def test_words_that_begin_like_something_packed_are_words() -> None:
    for text in ("BZh is short", "PK 3 4", "7z files", "zip"):
        check_no_archive(text.encode(), "a.txt")


@each_form
def test_it_reads_pipes(tmp_path: Path, content: bytes) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert lines_of(pipe) == TEXT.splitlines(keepends=True)
    writer.join()


@pytest.mark.parametrize("number", [3, 12, 25, -1])
def test_a_packed_file_that_was_cut_off_is_an_error_that_names_it(
    tmp_path: Path, number: int
) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(TEXT)[:number])
    with pytest.raises(ConfigurationError, match="cut.gz: the gzip file is damaged or was cut off"):
        lines_of(path)
