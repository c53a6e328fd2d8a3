from pathlib import Path

import h5py
import pytest

from elmo_scratch.interop.layer_files.reader import is_key


@pytest.mark.parametrize("key", ["0", "a sentence", "..", "a . b", "...", "Où ?", "\\", " "])
def test_a_key_is_the_name_of_one_data_set(key: str, tmp_path: Path) -> None:
    assert is_key(key)
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file[key] = [1.0]
        assert list(file) == [key]


@pytest.mark.parametrize("key", ["", ".", "/", "and / or", "a \0 b"])
def test_what_hdf5_takes_for_something_else_is_none(key: str, tmp_path: Path) -> None:
    assert not is_key(key)
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        try:
            file.create_dataset(key, data=[1.0])
        except (TypeError, ValueError):
            return
        # Without a name it has no place in the file.
        assert list(file) != [key]
