from pathlib import Path
from typing import List, Type, Union

import h5py
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import layer_file as module
from elmo_scratch.embedders.layer_file import LayersInMemory, LayersOnDisk, TokenNumbers
from elmo_scratch.interop import LayerFile
from tests.interop.layer_files.tiny_layers import FACTS, vectors_of, write_layers

Kind = Type[Union[LayersInMemory, LayersOnDisk]]

SENTENCES = ["The river rose .", "a", "x  y z", "Où est 🦩 ?", *(f"number {n}" for n in range(20))]

each_kind = pytest.mark.parametrize("kind", [LayersInMemory, LayersOnDisk])


def layers_in(path: Path, kind: Kind) -> Union[LayersInMemory, LayersOnDisk]:
    return kind(LayerFile(path), TokenNumbers(str(path)))


@each_kind
@pytest.mark.parametrize("kept", ["all", "top", "average"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_each_number_has_the_layers_of_its_token(
    kind: Kind, kept: str, dtype: str, tmp_path: Path
) -> None:
    facts = FACTS._replace(kept=kept, dtype=dtype)
    path = write_layers(tmp_path / "layers.hdf5", SENTENCES, facts)
    numbers, layers = TokenNumbers(str(path)), layers_in(path, kind)
    asked = [number for sentence in SENTENCES for number in numbers.of(sentence.split())]
    expected = numpy.concatenate(
        [
            vectors_of(sentence, facts).reshape(-1, len(sentence.split()), 4)
            for sentence in SENTENCES
        ],
        axis=1,
    )
    order = numpy.random.default_rng(13).integers(len(asked), size=2 * len(asked))
    found = layers.of(numpy.array(asked)[order])
    assert found.dtype == dtype
    assert numpy.array_equal(found, expected[:, order])


def test_sentences_that_were_read_last_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_layers(tmp_path / "layers.hdf5", SENTENCES)
    numbers, layers = TokenNumbers(str(path)), LayerFile(path)
    read: List[str] = []

    def read_and_tell(self: LayerFile, key: str) -> numpy.ndarray:
        read.append(key)
        return vectors_of(SENTENCES[int(key)])

    monkeypatch.setattr(LayerFile, "read", read_and_tell)
    # Room for two sentences of two tokens.
    monkeypatch.setattr(module, "KEPT_BYTES", 2 * 3 * 2 * 4 * 4)
    on_disk = LayersOnDisk(layers, numbers)
    for number in (0, 1, 0, 2, 0, 1):
        on_disk.of(numpy.array(numbers.of(["number", str(number)])))
    assert read == ["4", "5", "6", "5"]


@each_kind
def test_a_number_of_no_token_is_an_error(kind: Kind, tmp_path: Path) -> None:
    layers = layers_in(write_layers(tmp_path / "layers.hdf5", ["a b", "c"]), kind)
    for number in (0, 4):
        with pytest.raises(ConfigurationError, match="those of another one came"):
            layers.of(numpy.array([number]))


@each_kind
def test_vectors_of_other_tokens_than_the_sentences_are_an_error(
    kind: Kind, tmp_path: Path
) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["a b"])
    with h5py.File(path, "r+") as file:
        del file["0"]
        file["0"] = numpy.zeros((3, 3, 4), "float32")
    with pytest.raises(
        ConfigurationError, match="'0' has vectors of 3 tokens, but its sentence has 2"
    ):
        layers_in(path, kind).of(numpy.array([TokenNumbers(str(path)).before_first + 1]))


@each_kind
def test_a_key_without_vectors_is_an_error(kind: Kind, tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["a b", "c"])
    with h5py.File(path, "r+") as file:
        del file["0"]
    with pytest.raises(ConfigurationError, match="names the key '0', but it is missing"):
        layers_in(path, kind).of(numpy.array([TokenNumbers(str(path)).before_first + 1]))


def test_more_than_memory_has_room_for_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["a b", "c"])
    monkeypatch.setattr(module, "machine_memory", lambda: 3 * 3 * 4 * 4 - 1)
    with pytest.raises(ConfigurationError, match="the layers take .* Leave out `in_memory`"):
        layers_in(path, LayersInMemory)


def test_an_empty_file_has_no_layers(tmp_path: Path) -> None:
    layers = layers_in(write_layers(tmp_path / "layers.hdf5", []), LayersInMemory)
    with pytest.raises(ConfigurationError, match="those of another one came"):
        layers.of(numpy.array([1]))
