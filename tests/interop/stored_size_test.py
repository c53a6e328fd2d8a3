from pathlib import Path

import h5py
import numpy
import pytest

from elmo_scratch.interop.stored_size import COMPRESSIBLE, SMALL, refused_size


@pytest.mark.parametrize(
    ("length", "is_written", "is_refused"),
    [
        (SMALL // 4, False, False),
        (SMALL // 4 + 1, False, True),
        (SMALL // 4 + 1, True, False),
    ],
)
def test_what_takes_much_must_be_stored(
    length: int, is_written: bool, is_refused: bool, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        data = file.create_dataset("a", (length,), "float32", chunks=(2**16,))
        if is_written:
            # One of sixty-four of its chunks.
            for start in range(0, length, COMPRESSIBLE * 2**16):
                data[start : start + 2**16] = numpy.ones(min(2**16, length - start))
        file.flush()
        reason = refused_size(file, data.id)
    assert is_refused == reason.startswith(f"would take {4 * length} bytes of memory, but no more")
    assert is_refused or reason == ""


def test_a_chunk_is_unpacked_whole(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        chunks = (SMALL // 4 + 1,)
        data = file.create_dataset(
            "a", data=[1.0], maxshape=(None,), dtype="float32", chunks=chunks, compression="gzip"
        )
        assert refused_size(file, data.id).startswith(f"would take {SMALL + 4} bytes of memory")
