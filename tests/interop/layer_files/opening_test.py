from pathlib import Path

import h5py
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.layer_files.reader import has_numbers_for_keys, has_sentence_index, opened


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="layers.hdf5: there is no such file"):
        opened(tmp_path / "layers.hdf5")


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected a file, but it is a folder"):
        opened(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no HDF5", b"\x89HDF\r\n\x1a\n", bytes(5000)])
def test_a_file_of_another_kind_is_an_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "layers.hdf5"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="layers.hdf5: expected an HDF5 file of layers"):
        opened(path)


@pytest.mark.parametrize("share", [0.99, 0.5, 0.01])
def test_a_file_that_was_cut_off_is_an_error(share: float, tmp_path: Path) -> None:
    path = tmp_path / "layers.hdf5"
    with h5py.File(path, "w") as file:
        file["0"] = [1.0] * 10_000
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ConfigurationError, match="may not have been copied to its end"):
        opened(path)


def test_a_map_of_sentences_is_one_string(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "layers.hdf5", "w") as file:
        assert not has_sentence_index(file)
        file["sentence_to_index"] = [[1.0, 2.0]]
        assert not has_sentence_index(file)
        del file["sentence_to_index"]
        file["elsewhere"] = ["{}"]
        file["sentence_to_index"] = h5py.SoftLink("/elsewhere")
        assert not has_sentence_index(file)
        del file["sentence_to_index"]
        file["sentence_to_index"] = ["{}"]
        assert has_sentence_index(file)


@pytest.mark.parametrize(
    "keys, has_numbers",
    [
        ([], True),
        (["0"], True),
        (["0", "1", "10"], True),
        (["1000", "1001"], True),
        (["The river"], False),
        (["1999", "The river"], False),
        (["The river", "1999"], False),
    ],
)
@pytest.mark.parametrize("track_order", [True, False])
def test_line_numbers_are_told_from_sentences(
    keys: list, has_numbers: bool, track_order: bool, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "layers.hdf5", "w", track_order=track_order) as file:
        for key in keys:
            file[key] = [1.0]
        assert has_numbers_for_keys(file) == has_numbers
