from pathlib import Path

import h5py
import numpy
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z

from elmo_scratch.interop.layer_files.reader import refused_size
from elmo_scratch_compat.bounds import HDF5_ALWAYS, HDF5_COMPRESSIBLE


@pytest.mark.parametrize(
    ("length", "is_written", "is_refused"),
    [
        (HDF5_ALWAYS // 4, False, False),
        (HDF5_ALWAYS // 4 + 1, False, True),
        (HDF5_ALWAYS // 4 + 1, True, False),
    ],
)
def test_what_takes_much_must_be_stored(
    length: int, is_written: bool, is_refused: bool, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        data = file.create_dataset("a", (length,), "float32", chunks=(2**16,))
        if is_written:
            # One of sixty-four of its chunks.
            for start in range(0, length, HDF5_COMPRESSIBLE * 2**16):
                data[start : start + 2**16] = numpy.ones(min(2**16, length - start))
        file.flush()
        reason = refused_size(file, data.id, data.id.get_create_plist())
    assert is_refused == reason.startswith(f"would take {4 * length} bytes of memory, but no more")
    assert is_refused or reason == ""


def test_a_chunk_is_unpacked_whole(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        chunks = (HDF5_ALWAYS // 4 + 1,)
        data = file.create_dataset(
            "a", data=[1.0], maxshape=(None,), dtype="float32", chunks=chunks, compression="gzip"
        )
        assert refused_size(file, data.id, data.id.get_create_plist()).startswith(
            f"would take {HDF5_ALWAYS + 4} bytes of memory"
        )


@pytest.mark.parametrize(("times", "is_refused"), [(1, False), (2, True)])
def test_what_is_packed_twice_is_refused(times: int, is_refused: bool, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_chunk((4,))
        properties.set_shuffle()
        properties.set_fletcher32()
        for code in [h5z.FILTER_LZF, h5z.FILTER_DEFLATE][:times]:
            properties.set_filter(code, h5z.FLAG_OPTIONAL, (4,))
        space = h5s.create_simple((4,))
        found = h5d.create(file.id, b"a", h5t.IEEE_F32LE, space, properties)
        assert (
            refused_size(file, found, properties).startswith("is packed more than once")
            == is_refused
        )
