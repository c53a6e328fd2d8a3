import json
import os
from pathlib import Path
from typing import Any, Dict

import h5py
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import LayerFileWriter

LAYERS, TOKENS, WIDTH = 3, 5, 7


def vectors(tokens: int = TOKENS) -> numpy.ndarray:
    count = LAYERS * tokens * WIDTH
    return numpy.arange(count, dtype="float32").reshape(LAYERS, tokens, WIDTH)


def index_of(file: h5py.File) -> Dict[str, Any]:
    return json.loads(file["sentence_to_index"][0])


def test_there_is_a_float32_data_set_for_each_line_from_zero(tmp_path: Path) -> None:
    with LayerFileWriter.open(tmp_path / "layers.hdf5") as writer:
        writer.write("one two three four five", vectors())
        writer.write("six seven", vectors(tokens=2) * 100)
    with h5py.File(tmp_path / "layers.hdf5") as file:
        assert set(file) == {"0", "1", "sentence_to_index"}
        assert file["0"].dtype == file["1"].dtype == numpy.float32
        assert numpy.array_equal(file["0"], vectors())
        assert numpy.array_equal(file["1"], vectors(tokens=2) * 100)


def test_vectors_of_another_precision_are_written_as_float32(tmp_path: Path) -> None:
    with LayerFileWriter.open(tmp_path / "layers.hdf5") as writer:
        writer.write("a b c d e", vectors().astype("float64") + 0.5)
        writer.write("a b c d e f g", vectors()[0].astype("float16"))
    with h5py.File(tmp_path / "layers.hdf5") as file:
        assert file["0"].dtype == file["1"].dtype == numpy.float32
        assert numpy.array_equal(file["0"], vectors() + 0.5)
        assert file["1"].shape == (TOKENS, WIDTH)


def test_the_index_is_one_string_of_json_from_sentences_to_keys(tmp_path: Path) -> None:
    with LayerFileWriter.open(tmp_path / "layers.hdf5") as writer:
        for sentence in ("one", "two", 'a "quoted" \\ word'):
            writer.write(sentence, vectors(tokens=1))
    with h5py.File(tmp_path / "layers.hdf5") as file:
        assert file["sentence_to_index"].shape == (1,)
        assert index_of(file) == {"one": "0", "two": "1", 'a "quoted" \\ word': "2"}


def test_of_equal_sentences_each_has_vectors_and_the_last_is_in_the_index(tmp_path: Path) -> None:
    with LayerFileWriter.open(tmp_path / "layers.hdf5") as writer:
        for number, sentence in enumerate(("one", "two", "one")):
            writer.write(sentence, vectors(tokens=1) + number)
    with h5py.File(tmp_path / "layers.hdf5") as file:
        assert set(file) == {"0", "1", "2", "sentence_to_index"}
        assert index_of(file) == {"one": "2", "two": "1"}
        assert numpy.array_equal(file["2"], vectors(tokens=1) + 2)


def test_sentences_of_any_script_are_in_the_index(tmp_path: Path) -> None:
    sentences = ["Où est la crêpe ?", "鹤 在 飞", "🦩 !", "sentence_to_index", "0"]
    with LayerFileWriter.open(tmp_path / "layers.hdf5") as writer:
        for sentence in sentences:
            writer.write(sentence, vectors())
    with h5py.File(tmp_path / "layers.hdf5") as file:
        assert index_of(file) == {sentence: str(key) for key, sentence in enumerate(sentences)}


def test_more_sentences_than_ten_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    with LayerFileWriter.open(tmp_path / "layers.hdf5") as writer:
        for number in range(13):
            writer.write(f"sentence {number}", vectors(tokens=1) + number)
    with h5py.File(tmp_path / "layers.hdf5") as file:
        for number in range(13):
            assert file[str(number)][0, 0, 0] == number
            assert index_of(file)[f"sentence {number}"] == str(number)


def test_an_error_leaves_the_older_file(tmp_path: Path) -> None:
    path = tmp_path / "layers.hdf5"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        with LayerFileWriter.open(path) as writer:
            writer.write("one", vectors())
            raise ZeroDivisionError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["layers.hdf5"]


def test_a_folder_in_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected a file to write to, but it is a folder"):
        with LayerFileWriter.open(tmp_path):
            pass


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="the folder .*nowhere doesn't exist"):
        with LayerFileWriter.open(tmp_path / "nowhere" / "layers.hdf5"):
            pass


def test_a_folder_that_cannot_be_written_to_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Permissions don't stop the superuser, as whom tests may run.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ConfigurationError, match="can't be written to"):
        with LayerFileWriter.open(tmp_path / "layers.hdf5"):
            pass
    assert os.listdir(tmp_path) == []
