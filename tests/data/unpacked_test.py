import bz2
import gzip
import io
import lzma
import os
import sys
import threading
import zipfile
from pathlib import Path
from typing import List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.lines import FORMS, check_no_archive, damage_told, unpacked

TEXT = "eins\nfünf\n".encode("utf-8")


def frames(*contents: bytes) -> bytes:
    """A Zstandard file with a frame for each content."""
    compressor = pytest.importorskip("zstandard").ZstdCompressor(write_checksum=True)
    return b"".join(compressor.compress(content) for content in contents)


PACK = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "Zstandard": frames}

each_packed = pytest.mark.parametrize("form", FORMS)
each_form = pytest.mark.parametrize("form", ["plain", *FORMS])


def packed(form: str, content: bytes = TEXT) -> bytes:
    return content if form == "plain" else PACK[form](content)


def lines_of(path: Path) -> List[bytes]:
    with open(path, "rb") as file, damage_told(str(path)):
        return list(unpacked(file))


@each_form
def test_what_is_packed_is_known_by_its_bytes(tmp_path: Path, form: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(packed(form))
    assert lines_of(path) == TEXT.splitlines(keepends=True)


def test_nothing_is_lost_of_a_file_that_is_shorter_than_the_sign(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    for content, lines in [(b"", []), (b"\x1f", [b"\x1f"]), (b"a", [b"a"])]:
        path.write_bytes(content)
        assert lines_of(path) == lines


@each_packed
def test_files_put_end_to_end_are_one(tmp_path: Path, form: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(packed(form) + packed(form, b"") + packed(form, b"elf\n" * 2**17))
    lines = lines_of(path)
    assert lines[:2] == TEXT.splitlines(keepends=True) and lines[2:] == [b"elf\n"] * 2**17


@each_packed
def test_no_text_is_packed_as_well(tmp_path: Path, form: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(packed(form, b""))
    assert lines_of(path) == []


def test_zstandard_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "text.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd and so on")
    with pytest.raises(ConfigurationError, match="text.zst: .* Run: pip install zstandard"):
        lines_of(path)


def zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("text.txt", content)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("bzip2", bz2.compress(TEXT)),
        ("xz", lzma.compress(TEXT)),
        ("zip", zipped(TEXT)),
        ("Zstandard", b"\x28\xb5\x2f\xfd and so on"),
        ("7-Zip", b"7z\xbc\xaf\x27\x1c and so on"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # a packed file holds the time
)
def test_what_is_packed_otherwise_is_an_error_that_says_how(kind: str, content: bytes) -> None:
    with pytest.raises(ConfigurationError, match=f"a.txt: expected text.* packed by {kind}. Unpac"):
        check_no_archive(content, "a.txt")


def test_words_that_begin_like_something_packed_are_words() -> None:
    for text in ("BZh is short", "BZh9 too", "PK 3 4", "7z files", "zip"):
        check_no_archive(text.encode(), "a.txt")


@each_form
def test_it_reads_pipes(tmp_path: Path, form: str) -> None:
    content = packed(form)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert lines_of(pipe) == TEXT.splitlines(keepends=True)
    writer.join()


@each_packed
@pytest.mark.parametrize("number", [11, 14, -3, -1])
def test_a_packed_file_that_was_cut_off_is_an_error_that_names_it(
    tmp_path: Path, number: int, form: str
) -> None:
    path = tmp_path / "cut.txt"
    path.write_bytes(packed(form)[:number])
    with pytest.raises(ConfigurationError, match="cut.txt: the compressed file is damaged or was"):
        lines_of(path)


@each_packed
def test_a_packed_file_with_a_wrong_byte_is_an_error_that_names_it(
    tmp_path: Path, form: str
) -> None:
    path = tmp_path / "bad.txt"
    content = bytearray(packed(form, TEXT * 99))
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="bad.txt: the compressed file is damaged"):
        lines_of(path)
