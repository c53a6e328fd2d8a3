import itertools
import json
import struct
from pathlib import Path
from typing import List

import h5py
import pytest

from elmo_scratch.interop.layer_files.sentence_map import read_long_string, write_long_string

# Around the size of the smallest heap, 4096 bytes with 32 that come first.
SIZES = [0, 1, 7, 8, 9, 4000, 4047, 4048, 4049, 4056, 4063, 4064, 4065, 4096, 3 * 2**20 + 5]
MORE_SIZES = sorted({*range(4046, 4066), 5000} - set(SIZES))

each_size = pytest.mark.parametrize(
    "size", [*SIZES, *(pytest.param(size, marks=pytest.mark.exhaustive) for size in MORE_SIZES)]
)


def text_of(size: int) -> bytes:
    return bytes(itertools.islice(itertools.cycle(b"abcdefghijklmnopqrstuvwxyz "), size))


def write(path: Path, text: bytes, pieces: List[bytes]) -> None:
    with h5py.File(path, "w", libver="earliest") as file:
        file["before"] = [1.0, 2.0]
        write_long_string(file, "text", len(text), pieces)
        file["after"] = [3.0]


@each_size
def test_hdf5_reads_it_as_a_string_of_its_own(size: int, tmp_path: Path) -> None:
    text = text_of(size)
    write(tmp_path / "file.hdf5", text, [text[:10], text[10:11], text[11:]])
    with h5py.File(tmp_path / "file.hdf5", "r") as file:
        assert set(file) == {"after", "before", "text"}
        assert file["text"].shape == (1,)
        assert h5py.check_string_dtype(file["text"].dtype) == ("utf-8", None)
        assert file["text"][0] == text
        assert file["before"][:].tolist() == [1.0, 2.0]
        assert file["after"][:].tolist() == [3.0]


@each_size
def test_it_is_read_in_pieces(size: int, tmp_path: Path) -> None:
    text = text_of(size)
    write(tmp_path / "file.hdf5", text, [text])
    with h5py.File(tmp_path / "file.hdf5", "r") as file:
        pieces = list(read_long_string(file, "text"))
    assert b"".join(pieces) == text
    assert max(map(len, pieces), default=0) <= 2**20


def test_hdf5_copies_it_to_another_file(tmp_path: Path) -> None:
    write(tmp_path / "file.hdf5", b"crane", [b"crane"])
    with (
        h5py.File(tmp_path / "file.hdf5", "r") as file,
        h5py.File(tmp_path / "copy.hdf5", "w") as copy,
    ):
        file.copy("text", copy)
        assert copy["text"][0] == b"crane"


def test_a_file_that_is_written_to_later_still_has_it(tmp_path: Path) -> None:
    # HDF5 must not take the room that it lies in for free.
    text = text_of(100_000)
    write(tmp_path / "file.hdf5", text, [text])
    with h5py.File(tmp_path / "file.hdf5", "a") as file:
        for number in range(200):
            file[str(number)] = [number] * 1000
    with h5py.File(tmp_path / "file.hdf5", "r") as file:
        assert file["text"][0] == text
        assert b"".join(read_long_string(file, "text")) == text


@pytest.mark.parametrize("chunks", [None, (1,)])
@pytest.mark.parametrize("others", [0, 5])
def test_a_string_that_hdf5_wrote_is_read(others: int, chunks: object, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        for number in range(others):
            file.create_dataset(f"other {number}", (1,), dtype=h5py.string_dtype())[0] = "x" * 50
        string = file.create_dataset("text", (1,), dtype=h5py.string_dtype(), chunks=chunks)
        string[0] = json.dumps({"鹤": "0"})
    with h5py.File(tmp_path / "file.hdf5", "r") as file:
        assert b"".join(read_long_string(file, "text")) == json.dumps({"鹤": "0"}).encode()


def test_a_string_that_was_never_written_is_empty(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        file.create_dataset("text", (1,), dtype=h5py.string_dtype())
        file.create_dataset("pieces", (1,), dtype=h5py.string_dtype(), chunks=(1,))
    with h5py.File(tmp_path / "file.hdf5", "r") as file:
        assert list(read_long_string(file, "text")) == [b""]
        assert list(read_long_string(file, "pieces")) == [b""]


@pytest.mark.parametrize("size", [3, 5, 9000])
def test_pieces_of_another_size_are_an_error(size: int, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        with pytest.raises(ValueError, match="expected 4 bytes, but got"):
            write_long_string(file, "text", 4, [text_of(size)])


@pytest.mark.parametrize("chunks", [None, (1,)])
def test_a_string_longer_than_its_file_is_an_error(chunks: object, tmp_path: Path) -> None:
    path = tmp_path / "file.hdf5"
    with h5py.File(path, "w") as file:
        string = file.create_dataset("text", (1,), dtype=h5py.string_dtype(), chunks=chunks)
        string[0] = "a text"
    content = path.read_bytes()
    reference = struct.pack("<IQ", 6, content.index(b"GCOL"))
    assert content.count(reference) == 1
    path.write_bytes(content.replace(reference, struct.pack("<I", 2**32 - 1) + reference[4:]))
    with h5py.File(path, "r") as file:
        with pytest.raises(
            ValueError, match="told to have 4294967295 bytes, but the file has fewer"
        ):
            list(read_long_string(file, "text"))
