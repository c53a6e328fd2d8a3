from pathlib import Path

import numpy
import pytest

from elmo_scratch.explore import ExportedTokens, write_projector
from elmo_scratch.interop import LayerFile
from tests.explore.tiny_explorations import SENTENCES, layers_of, write_explored


def test_each_token_has_its_vector_and_its_line(tmp_path: Path) -> None:
    path = write_explored(tmp_path / "layers.hdf5")
    folder = tmp_path / "projector"
    with LayerFile(path) as layers:
        tokens = ExportedTokens(layers)
        write_projector(tokens, 2, folder, labels=["a\tb", "", "c", "d", "e", "f"])
    vectors = numpy.loadtxt(folder / "vectors.tsv", delimiter="\t")
    expected = numpy.concatenate([layers_of(sentence)[2] for sentence in SENTENCES])
    expected /= numpy.linalg.norm(expected, axis=1, keepdims=True)
    assert vectors == pytest.approx(expected, abs=1e-5)
    header, *lines = (folder / "metadata.tsv").read_text("utf-8").split("\n")[:-1]
    assert header == "word\tsentence\tposition\tlabel\ttext"
    assert len(lines) == len(vectors)
    assert lines[4] == f"bank\t0\t4\ta b\t{SENTENCES[0]}"
    config = (folder / "projector_config.pbtxt").read_text("utf-8")
    assert 'tensor_name: "layer 2"' in config and 'tensor_path: "vectors.tsv"' in config


def test_a_layer_that_is_not_there_leaves_nothing(tmp_path: Path) -> None:
    with LayerFile(write_explored(tmp_path / "layers.hdf5")) as layers:
        with pytest.raises(IndexError, match="a layer from 0 to 2, but got 3"):
            write_projector(ExportedTokens(layers), 3, tmp_path / "projector")
    assert not (tmp_path / "projector").exists()
