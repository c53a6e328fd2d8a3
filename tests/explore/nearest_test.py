import tracemalloc
from pathlib import Path
from typing import List

import h5py
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch import LayerFile, nearest
from elmo_scratch.explore import ExportedTokens, Neighbour, tokens
from elmo_scratch.interop import LayerFileFacts, LayerFileWriter
from tests.explore.tiny_explorations import SENTENCES, by_brute_force, layers_of, write_explored
from tests.interop.layer_files.tiny_layers import FACTS, write_layers

ALL = numpy.concatenate([layers_of(sentence) for sentence in SENTENCES], axis=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_explored(tmp_path / "layers.hdf5")


def write_plane(path: Path, sentence: str, vectors: List[List[float]]) -> Path:
    """A file of one sentence and one layer, of vectors with two numbers."""
    facts = FACTS._replace(kept="top", layers=1, width=2)
    with LayerFileWriter.open(path, facts) as writer:
        writer.write("0", numpy.array(vectors, "float32"))
        writer.write_index([(sentence, "0")])
    return path


def test_a_neighbour_can_be_worked_out_by_hand(tmp_path: Path) -> None:
    # From the vector to the right: 60 degrees, 90, 180, and one without a direction.
    vectors = [[2.0, 0.0], [0.5, 0.75**0.5], [0.0, 3.0], [-1.0, 0.0], [0.0, 0.0]]
    path = write_plane(tmp_path / "plane.hdf5", "a b c d e", vectors)
    found = nearest(path, 0, 0, 0)
    assert [word for _, _, word, _ in found] == ["b", "c", "e", "d"]
    assert [cosine for _, _, _, cosine in found] == pytest.approx([0.5, 0, 0, -1], abs=1e-7)
    assert found[0] == (0, 1, "b", found[0].cosine)


def test_equal_neighbours_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    vectors = [[1.0, 2.0], [0.1, 0.3], [3.0, 1.0], [0.1, 0.3], [0.2, 0.6], [0.1, 0.3]]
    path = write_plane(tmp_path / "plane.hdf5", "a b c d e f", vectors)
    assert [found.word for found in nearest(path, 0, 3, 0, k=3)] == ["b", "e", "f"]


@pytest.mark.parametrize("block_numbers", [1, 2**22])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_neighbours_are_those_of_brute_force(
    layer: int, block_numbers: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "BLOCK_NUMBERS", block_numbers)  # 1: a sentence a block
    for sentence, position, row in ((0, 4, 4), (1, 1, 10), (5, 5, 37)):
        found = nearest(path, sentence, position, layer, k=20)
        expected = by_brute_force(ALL[layer], row)[:20]
        assert [one[:3] for one in found] == [one[:3] for one in expected]
        assert [one.cosine for one in found] == pytest.approx(
            [one.cosine for one in expected], abs=1e-6
        )


def test_each_word_counts_once_if_wished(path: Path) -> None:
    for layer in (0, 2):
        found = nearest(path, 0, 4, layer, k=50, each_word_once=True)
        first: dict = {}
        for one in by_brute_force(ALL[layer], 4):
            first.setdefault(one.word, one[:3])
        del first["bank"]
        assert [one[:3] for one in found] == list(first.values())


def test_a_sentence_is_named_by_its_number_or_itself(path: Path) -> None:
    with LayerFile(path) as opened:
        assert nearest(opened, SENTENCES[1], 1, 2) == nearest(path, 1, 1, 2)
        assert len(nearest(opened, 1, 1, 2, k=1000)) == 37


@pytest.mark.parametrize("kept", ["top", "average"])
def test_a_file_of_one_layer_has_layer_0(kept: str, tmp_path: Path) -> None:
    path = write_explored(tmp_path / "one.hdf5", facts=FACTS._replace(kept=kept))
    found = nearest(path, 0, 4, 0, k=3)
    assert [one[:3] for one in found] == [one[:3] for one in by_brute_force(ALL[2], 4)[:3]]
    with pytest.raises(IndexError, match="a layer from 0 to 0, but got 1"):
        nearest(path, 0, 4, 1)


def test_half_precision_and_sentences_for_keys_will_do(tmp_path: Path) -> None:
    facts = FACTS._replace(dtype="float16", keys="sentences")
    path = write_layers(tmp_path / "a.hdf5", ["c d", "a b"], facts, keys=["c d", "a b"],
                        has_index=False)  # fmt: skip
    # Without lines the order is that of the keys.
    assert {found.sentence for found in nearest(path, "c d", 0, 1)} == {0, 1}
    assert nearest(path, "c d", 0, 1) == nearest(path, 1, 0, 1)


def test_a_repeated_line_counts_at_its_last_place(tmp_path: Path) -> None:
    path = write_explored(tmp_path / "layers.hdf5", ["a b", "c d", "a b"])
    assert {found.sentence for found in nearest(path, 1, 0, 2)} == {1, 2}
    with pytest.raises(IndexError, match="from 1 to 2, but got 0.*repeats counts there only"):
        nearest(path, 0, 0, 2)


def test_what_is_not_there_is_an_error(path: Path) -> None:
    with pytest.raises(IndexError, match="a sentence, from 0 to 5, but got 6"):
        nearest(path, 6, 0, 0)
    with pytest.raises(KeyError, match="hold the sentence 'The bank'"):
        nearest(path, "The bank", 0, 0)
    for position in (-1, 9):
        with pytest.raises(IndexError, match=f"sentence 0 has the positions 0 to 8, .*{position}"):
            nearest(path, 0, position, 0)
    for layer in (-1, 3):
        with pytest.raises(IndexError, match=f"a layer from 0 to 2, but got {layer}"):
            nearest(path, 0, 0, layer)
    with pytest.raises(ValueError, match="`k` of 1 or more, but got 0"):
        nearest(path, 0, 0, 0, k=0)


def test_files_of_another_kind_are_an_error(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The bank\n", encoding="utf-8")
    pooled: LayerFileFacts = FACTS._replace(pool="mean")
    other = tmp_path / "other.hdf5"
    with h5py.File(other, "w") as file:
        file["numbers"] = [1, 2]
    for file, message in (
        (tmp_path / "none.hdf5", "there is no such file"),
        (text, "expected an HDF5 file of layers"),
        (other, "expected vectors"),
        (write_layers(tmp_path / "p.hdf5", ["a b"], pooled), "vectors of tokens.*without --pool"),
        (write_layers(tmp_path / "f.hdf5", ["a"], has_index=False), "without --forget-sentences"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            nearest(file, 0, 0, 0)


def test_numbers_that_are_none_are_an_error(tmp_path: Path) -> None:
    path = write_plane(tmp_path / "nan.hdf5", "a b", [[1.0, 2.0], [numpy.nan, 1.0]])
    with pytest.raises(ConfigurationError, match="vectors of '0' hold infinity or NaN"):
        nearest(path, 0, 0, 0)


@pytest.mark.parametrize(
    "index, message",
    [
        ('{"a b": "0", "c d": "0"}', "two sentences the same key"),
        ('{"a b": "one"}', "numbers of lines, but got 'one'"),
        ('{"a b": "7"}', "names the key '7', but it is missing"),
        ('{"a": "0"}', "vectors of 2 tokens, but its sentence has 1"),
        ("{}", "without --forget-sentences"),
    ],
)
def test_a_map_that_makes_no_sense_is_an_error(index: str, message: str, tmp_path: Path) -> None:
    path = write_explored(tmp_path / "layers.hdf5", ["a b", "c d"])
    with h5py.File(path, "r+") as file:
        del file["sentence_to_index"]
        file.create_dataset("sentence_to_index", data=[index], dtype=h5py.string_dtype())
    with pytest.raises(ConfigurationError, match=message), LayerFile(path) as layers:
        sentence = ExportedTokens(layers).sentences[0]
        nearest(layers, sentence, 0, 1)


def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    sentences = [" ".join(f"w{line}-{word}" for word in range(100)) for line in range(300)]
    facts = FACTS._replace(width=64)
    with LayerFileWriter.open(tmp_path / "large.hdf5", facts) as writer:
        vectors = numpy.random.default_rng(13).normal(size=(3, 100, 64)).astype("float32")
        for number in range(len(sentences)):
            writer.write(str(number), numpy.roll(vectors, number, axis=2))
        writer.write_index((sentence, str(number)) for number, sentence in enumerate(sentences))
    tracemalloc.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "BLOCK_NUMBERS", 2**16)
        found = nearest(tmp_path / "large.hdf5", 5, 3, 2, k=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found[0] == Neighbour(69, 3, "w69-3", found[0].cosine)
    assert found[0].cosine == pytest.approx(1)  # rolled once around
    assert peak < 8e6  # the layer's vectors alone take 7.7 MB, all three 23 MB
