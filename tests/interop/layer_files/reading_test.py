import json
import multiprocessing
import os
import pickle
import shutil
import sys
from pathlib import Path
from typing import List, Optional

import h5py
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import LayerFile, LayerFileFacts
from tests import FIXTURES_ROOT
from tests.interop.layer_files.tiny_layers import FACTS, vectors_of, write_layers

SENTENCES = ["The river rose .", "a", "Où est 🦩 ?", "a", "x  y", "0", *map(str, range(50, 60))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_layers(tmp_path / "layers.hdf5", SENTENCES)


def test_lines_are_found_by_number(path: Path) -> None:
    with LayerFile(path) as layers:
        assert len(layers) == len(SENTENCES)
        for number, sentence in enumerate(SENTENCES):
            assert numpy.array_equal(layers[number], vectors_of(sentence))
        assert layers[0].dtype == numpy.float32
        assert numpy.array_equal(layers[-1], layers[len(SENTENCES) - 1])


def test_a_line_that_is_not_there_is_an_error(path: Path) -> None:
    with LayerFile(path) as layers:
        for number in (16, -17):
            with pytest.raises(IndexError, match=f"holds 16 sentences, but not number {number}"):
                layers[number]


def test_sentences_are_found(path: Path) -> None:
    with LayerFile(path) as layers:
        for sentence in SENTENCES:
            assert sentence in layers
            assert numpy.array_equal(layers[sentence], vectors_of(sentence))


def test_a_sentence_that_is_not_there_is_an_error(path: Path) -> None:
    with LayerFile(path) as layers:
        for sentence in ("The river", "x y", "1", "sentence_to_index", ""):
            assert sentence not in layers
            with pytest.raises(KeyError, match="not known to hold the sentence"):
                layers[sentence]


def test_a_slice_is_a_list(path: Path) -> None:
    with LayerFile(path) as layers:
        assert [len(array[0]) for array in layers[:4]] == [4, 1, 4, 1]
        assert len(layers[10:100]) == 6
        assert layers[7:7] == []
        assert numpy.array_equal(layers[2:0:-1][0], layers[2])


def test_of_equal_sentences_the_last_is_found(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["a b", "c", "a b"])
    with h5py.File(path, "r+") as file:
        file["2"][...] += 1
    with LayerFile(path) as layers:
        assert numpy.array_equal(layers["a b"], layers[2])
        assert not numpy.array_equal(layers["a b"], layers[0])


def test_it_tells_its_sentences_and_their_keys(path: Path) -> None:
    with LayerFile(path) as layers:
        assert dict(layers.sentences()) == {text: str(key) for key, text in enumerate(SENTENCES)}
        assert set(layers.keys()) == set(map(str, range(16)))


@pytest.mark.parametrize("kept", ["all", "top", "average"])
@pytest.mark.parametrize("pool", [None, "mean", "max"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_facts_say_what_is_there(
    kept: str, pool: Optional[str], dtype: str, tmp_path: Path
) -> None:
    facts = FACTS._replace(kept=kept, pool=pool, dtype=dtype)
    path = write_layers(tmp_path / "layers.hdf5", ["one two", "three"], facts)
    with LayerFile(path) as layers:
        assert layers.facts == facts
        assert layers["one two"].dtype == dtype
        assert numpy.array_equal(layers["one two"], vectors_of("one two", facts))


def test_where_sentences_are_the_keys_they_are_found(tmp_path: Path) -> None:
    sentences = ["The river rose .", "1999", "Où ?"]
    path = write_layers(tmp_path / "layers.hdf5", sentences, keys=sentences, has_index=False)
    with LayerFile(path) as layers:
        assert len(layers) == 3
        assert dict(layers.sentences()) == {sentence: sentence for sentence in sentences}
        for sentence in sentences:
            assert numpy.array_equal(layers[sentence], vectors_of(sentence))
        with pytest.raises(ConfigurationError, match="ask for a sentence"):
            layers[0]


@pytest.mark.parametrize("sentences", [["10", "20 apples", "30"], ["10", "0"]])
def test_sentences_that_are_numbers_are_no_lines(sentences: List[str], tmp_path: Path) -> None:
    facts = FACTS._replace(keys="sentences")
    path = write_layers(tmp_path / "x.hdf5", sentences, facts, keys=sentences, has_index=False)
    with LayerFile(path) as layers:
        assert dict(layers.sentences()) == {sentence: sentence for sentence in sentences}
        for sentence in sentences:
            assert numpy.array_equal(layers[sentence], vectors_of(sentence))
        with pytest.raises(ConfigurationError, match="ask for a sentence"):
            layers[10]


def test_a_sentence_may_be_called_as_the_map_is(tmp_path: Path) -> None:
    sentences = ["sentence_to_index", "two words"]
    path = write_layers(tmp_path / "layers.hdf5", sentences, keys=sentences, has_index=False)
    with LayerFile(path) as layers:
        assert len(layers) == 2
        assert set(layers.keys()) == set(sentences)
        assert numpy.array_equal(layers["sentence_to_index"], vectors_of("sentence_to_index"))


def test_a_file_may_have_forgotten_its_sentences(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["one", "two"], has_index=False)
    with LayerFile(path) as layers:
        assert list(layers.sentences()) == []
        assert len(layers) == 2 == len(layers[:])
        with pytest.raises(KeyError, match="not known to hold the sentence 'one'"):
            layers["one"]


def test_a_part_of_a_text_keeps_its_numbers(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["one", "two"], keys=["1000", "1001"])
    with LayerFile(path) as layers:
        assert numpy.array_equal(layers[1001], layers["two"])
        assert numpy.array_equal(layers[-1], layers[1001])
        for place in (slice(None), slice(1000, 1002), slice(5000), slice(-2, None)):
            (one, two) = layers[place]
            assert numpy.array_equal(one, layers["one"])
            assert numpy.array_equal(two, layers["two"])
        assert [len(layers[place]) for place in (slice(1001), slice(1001, None))] == [1, 1]
        for number in (0, 999, 1002, -3):
            with pytest.raises(IndexError):
                layers[number]


def test_a_file_without_sentences_is_empty(tmp_path: Path) -> None:
    for has_index in (True, False):
        with LayerFile(write_layers(tmp_path / "layers.hdf5", [], has_index=has_index)) as layers:
            assert len(layers) == 0
            assert list(layers.sentences()) == list(layers.keys()) == layers[:] == []
            assert "one" not in layers


def as_in_allennlp(path: Path, kept: str) -> Path:
    """A file as `allennlp elmo` of AllenNLP 0.9 wrote it."""
    facts = FACTS._replace(kept=kept)
    with h5py.File(path, "w") as file:
        for number, sentence in enumerate(SENTENCES):
            vectors = vectors_of(sentence, facts)
            file.create_dataset(str(number), vectors.shape, dtype="float32", data=vectors)
        index = file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())
        index[0] = json.dumps({sentence: str(key) for key, sentence in enumerate(SENTENCES)})
    return path


@pytest.mark.parametrize(
    "kept, facts",
    [
        ("all", LayerFileFacts("", "", "all", None, 3, 4, "float32", "")),
        ("top", LayerFileFacts("", "", "", None, 1, 4, "float32", "")),
    ],
)
def test_files_of_allennlp_0_9_are_read(kept: str, facts: LayerFileFacts, tmp_path: Path) -> None:
    with LayerFile(as_in_allennlp(tmp_path / "layers.hdf5", kept)) as layers:
        assert layers.facts == facts
        assert len(layers) == len(SENTENCES)
        for number, sentence in enumerate(SENTENCES):
            expected = vectors_of(sentence, FACTS._replace(kept=kept))
            assert numpy.array_equal(layers[number], expected)
            assert numpy.array_equal(layers[sentence], expected)


def shape_of(layers: LayerFile, sentence: str) -> None:
    """Ends a process with an error if the file can't be read there."""
    sys.exit(0 if layers[sentence].shape == (3, 4, 4) else 1)


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.exhaustive)])
def test_other_processes_can_read_it(method: str, path: Path) -> None:
    with LayerFile(path) as layers:
        expected = layers["The river rose ."]
        process = multiprocessing.get_context(method).Process(  # type: ignore[attr-defined]
            target=shape_of, args=(layers, "The river rose .")
        )
        process.start()
        process.join(60)
        assert process.exitcode == 0
        assert numpy.array_equal(layers["The river rose ."], expected)


def test_it_can_be_pickled(path: Path) -> None:
    layers = LayerFile(path)
    assert "a" in layers
    with pickle.loads(pickle.dumps(layers)) as again:
        assert again.facts == layers.facts
        assert numpy.array_equal(again["a"], layers["a"])


def test_it_opens_again_by_itself(path: Path) -> None:
    layers = LayerFile(path)
    layers.close()
    layers.close()
    assert layers[1].shape == (3, 1, 4)


def test_it_is_found_from_another_folder(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    layers = LayerFile(path.name)
    assert str(layers.path) == path.name
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert "a" in layers
    again = pickle.loads(pickle.dumps(layers))
    assert numpy.array_equal(again["a"], layers["a"])


def test_another_file_in_its_place_is_an_error(path: Path) -> None:
    layers = LayerFile(path)
    layers.close()
    os.replace(shutil.copy(path, path.with_name("other")), path)
    with pytest.raises(ConfigurationError, match="another file took the place"):
        layers[0]


@pytest.mark.parametrize("name", ["elmo/plain/weights.hdf5", "text/tour.txt", "elmo", "none.hdf5"])
def test_a_file_of_another_kind_is_an_error(name: str) -> None:
    with pytest.raises(ConfigurationError, match=str(FIXTURES_ROOT / name)):
        LayerFile(FIXTURES_ROOT / name)


def test_a_map_of_what_numpy_lacks_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "times.hdf5"
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple((1,))
        h5py.h5d.create(file.id, b"sentence_to_index", h5py.h5t.UNIX_D32LE, space)
    with pytest.raises(ConfigurationError, match="times.hdf5: expected an HDF5 file of layers, as"):
        LayerFile(path)


def test_an_empty_file_that_says_nothing_is_an_error(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "layers.hdf5", "w"):
        pass
    with pytest.raises(ConfigurationError, match="expected a file of layers, but it holds none"):
        LayerFile(tmp_path / "layers.hdf5")


@pytest.mark.parametrize("shape, dtype", [((2, 1, 4), "f4"), ((3, 1, 5), "f4"), ((3, 1, 4), "f2")])
def test_a_sentence_that_is_not_what_the_file_says_is_an_error(
    shape: tuple, dtype: str, path: Path
) -> None:
    with h5py.File(path, "r+") as file:
        del file["1"]
        file["1"] = numpy.zeros(shape, dtype)
    with LayerFile(path) as layers:
        with pytest.raises(ConfigurationError, match="'1' has float.. numbers in the shape"):
            layers[1]


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": "0"', "\x01"])
def test_a_map_that_makes_no_sense_is_an_error(text: str, path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file["sentence_to_index"]
        file.create_dataset("sentence_to_index", (1,), h5py.string_dtype())[0] = text
    with LayerFile(path) as layers:
        with pytest.raises(ConfigurationError, match="`sentence_to_index` can't be read"):
            layers["a"]
        assert layers[1].shape == (3, 1, 4)


def test_a_map_to_nowhere_is_an_error(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file["3"]
    with LayerFile(path) as layers:
        with pytest.raises(KeyError, match="3"):
            layers["a"]


def test_a_map_of_damaged_places_is_an_error(path: Path) -> None:
    whole = path.read_bytes()
    start = whole.index(b"GCOL\1\0\0\0")
    # Neither the heap nor HDF5 has the string any more.
    while start >= 0:
        whole = whole[:start] + b"HOLE" + whole[start + 4 :]
        start = whole.find(b"GCOL\1\0\0\0")
    path.write_bytes(whole)
    with pytest.raises(ConfigurationError):
        list(LayerFile(path).sentences())


def test_a_home_folder_may_be_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(path.parent))
    with LayerFile(f"~/{path.name}") as layers:
        assert len(layers) == len(SENTENCES)
