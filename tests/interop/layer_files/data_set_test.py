import os
import pickle
from pathlib import Path
from typing import Any, Callable, Dict

import h5py
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.layer_files.reader import DataSet

NUMBERS = numpy.arange(24, dtype="float32").reshape(3, 2, 4)


def write(path: Path, fill: Callable[[h5py.File], None]) -> None:
    with h5py.File(path, "w") as file:
        fill(file)


def read(path: Path, key: str = "0") -> numpy.ndarray:
    with h5py.File(path, "r") as file:
        return DataSet(file, key, "layers.hdf5").read()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4"])
@pytest.mark.parametrize("storage", [{}, {"compression": "gzip"}, {"compression": "lzf"}])
def test_numbers_with_a_fraction_are_read(
    dtype: str, storage: Dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "layers.hdf5"
    write(path, lambda file: file.create_dataset("0", data=NUMBERS.astype(dtype), **storage))
    with h5py.File(path, "r") as file:
        data_set = DataSet(file, "0", "layers.hdf5")
        assert data_set.shape == (3, 2, 4)
        assert data_set.dtype == numpy.dtype(dtype).name
        assert data_set.read().dtype == data_set.dtype
        assert numpy.array_equal(data_set.read(), NUMBERS)


def test_a_sentence_without_tokens_is_read(tmp_path: Path) -> None:
    path = tmp_path / "layers.hdf5"
    write(path, lambda file: file.create_dataset("0", (3, 0, 4), "float32"))
    assert read(path).shape == (3, 0, 4)


def test_it_is_copied_as_it_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "layers.hdf5"
    write(path, lambda file: file.create_dataset("0", data=NUMBERS, compression="gzip"))
    with h5py.File(path, "r") as file, h5py.File(tmp_path / "copy.hdf5", "w") as copy:
        DataSet(file, "0", "layers.hdf5").copy(copy)
        assert copy["0"].compression == "gzip"
        assert numpy.array_equal(copy["0"], NUMBERS)


@pytest.mark.parametrize("key", ["1", "", ".", "/", "/0", "./0", "group/0", "0\0", "..", "0/"])
def test_a_name_that_is_none_of_a_data_set_is_not_found(key: str, tmp_path: Path) -> None:
    path = tmp_path / "layers.hdf5"
    write(path, lambda file: file.update({"0": NUMBERS, "group/0": NUMBERS}))
    with pytest.raises(KeyError):
        read(path, key)


class Opened:
    """Creates a file when it is read from a pickle."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (self.path, "w")


def test_a_pickle_is_left_alone(tmp_path: Path) -> None:
    trap = numpy.void(pickle.dumps(Opened(tmp_path / "trap")))
    path = tmp_path / "layers.hdf5"
    write(path, lambda file: file.create_dataset("0", data=trap))
    with pytest.raises(ConfigurationError, match="expected vectors"):
        read(path)
    assert os.listdir(tmp_path) == ["layers.hdf5"]


def text(file: h5py.File) -> None:
    file.create_dataset("0", (3, 2, 4), h5py.string_dtype())


def references(file: h5py.File) -> None:
    file.create_dataset("0", (3, 2, 4), h5py.ref_dtype)


def lists(file: h5py.File) -> None:
    file.create_dataset("0", (3, 2), h5py.vlen_dtype("float32"))


def whole_numbers(file: h5py.File) -> None:
    file["0"] = NUMBERS.astype("int32")


def records(file: h5py.File) -> None:
    file["0"] = numpy.zeros(3, dtype=[("a", "f4"), ("b", "f4")])


def group(file: h5py.File) -> None:
    file.create_group("0")


def kind(file: h5py.File) -> None:
    file["0"] = numpy.dtype("float32")


def nothing(file: h5py.File) -> None:
    file["0"] = h5py.Empty("float32")


def soft_link(file: h5py.File) -> None:
    file["there"] = NUMBERS
    file["0"] = h5py.SoftLink("/there")


def link_to_a_file(file: h5py.File) -> None:
    write(Path(file.filename).with_name("other.hdf5"), lambda other: other.update({"0": NUMBERS}))
    file["0"] = h5py.ExternalLink("other.hdf5", "0")


def stored_in_a_file(file: h5py.File) -> None:
    other = Path(file.filename).with_name("other")
    other.write_bytes(NUMBERS.tobytes())
    file.create_dataset("0", (3, 2, 4), "float32", external=[(str(other), 0, NUMBERS.nbytes)])


def made_of_files(file: h5py.File) -> None:
    write(Path(file.filename).with_name("other.hdf5"), lambda other: other.update({"0": NUMBERS}))
    layout = h5py.VirtualLayout((3, 2, 4), "float32")
    layout[...] = h5py.VirtualSource("other.hdf5", "0", (3, 2, 4))
    file.create_virtual_dataset("0", layout)


@pytest.mark.parametrize(
    "fill, message",
    [
        (text, "of the type object"),
        (references, "of the type object"),
        (lists, "of the type object"),
        (whole_numbers, "of the type int32"),
        (records, "of the type"),
        (group, "no data set"),
        (kind, "no data set"),
        (nothing, "of no shape"),
        (soft_link, "a link"),
        (link_to_a_file, "a link"),
        (stored_in_a_file, "stored in another file"),
        (made_of_files, "stored in other files"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_is_no_vectors_is_refused(
    fill: Callable[[h5py.File], None], message: str, tmp_path: Path
) -> None:
    write(tmp_path / "layers.hdf5", fill)
    with pytest.raises(ConfigurationError, match=f"layers.hdf5: '0': expected vectors.*{message}"):
        read(tmp_path / "layers.hdf5")


@pytest.mark.parametrize(
    "storage",
    [
        {},
        {"chunks": (3, 1, 1000)},
        {"chunks": (3, 1, 1000), "compression": "gzip"},
    ],
)
@pytest.mark.parametrize("tokens", [10**5, 10**12])
def test_a_huge_shape_without_the_numbers_takes_no_memory(
    tokens: int, storage: Dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "layers.hdf5"

    def fill(file: h5py.File) -> None:
        data_set = file.create_dataset("0", (3, tokens, 1000), "float32", **storage)
        if "compression" in storage:
            data_set[:, :100] = 1.0

    write(path, fill)
    assert path.stat().st_size < 2**20
    with pytest.raises(ConfigurationError, match=f"'0' has the shape .3, {tokens}, 1000.*stored"):
        read(path)


def test_a_huge_chunk_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "layers.hdf5"

    def fill(file: h5py.File) -> None:
        chunks, maxshape = (64, 1024, 512), (None, None, None)
        file.create_dataset("0", data=NUMBERS, chunks=chunks, maxshape=maxshape, compression="gzip")

    write(path, fill)
    with pytest.raises(ConfigurationError, match="would take 134217728 bytes of memory"):
        read(path)


def test_numbers_beyond_the_end_of_the_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "layers.hdf5"
    write(path, lambda file: file.create_dataset("0", data=NUMBERS))
    with h5py.File(path, "r") as file:
        place = file["0"].id.get_offset()
    whole, size = path.read_bytes(), NUMBERS.nbytes.to_bytes(8, "little")
    layout = place.to_bytes(8, "little") + size
    assert whole.count(layout) == 1
    path.write_bytes(whole.replace(layout, (2**40).to_bytes(8, "little") + size))
    with pytest.raises(ConfigurationError, match="'0' can't be read; the file is damaged"):
        read(path)


def test_a_damaged_name_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "layers.hdf5"
    write(path, lambda file: file.create_dataset("0", data=NUMBERS))
    path.write_bytes(path.read_bytes().replace(b"HEAP", b"HOLE").replace(b"SNOD", b"SNOW"))
    with pytest.raises(ConfigurationError, match="'0' can't be read; the file is damaged"):
        read(path)
