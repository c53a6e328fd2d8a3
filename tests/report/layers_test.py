import math
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import LayerFileFacts, LayerFileWriter
from elmo_scratch.report import layers as module
from elmo_scratch.report import read_contents, report_of
from elmo_scratch.report.document import Chart, Paragraph, Section, Table
from elmo_scratch.report.layers import describe_layers
from tests.report.overview_test import texts

FACTS = LayerFileFacts("sha256:a", "sha256:b", "all", None, 2, 2, "float32", "reset")

EAST, NORTH = [1.0, 0.0], [0.0, 1.0]


def write_layers(
    path: Path,
    sentences: List[Any],
    facts: LayerFileFacts = FACTS,
    index: Optional[List[str]] = None,
) -> Path:
    with LayerFileWriter.open(path, facts) as writer:
        for number, vectors in enumerate(sentences):
            writer.write(str(number), numpy.array(vectors, "float32"))
        if index is not None:
            writer.write_index((text, str(number)) for number, text in enumerate(index))
    return path


# Layer 0 points east and north; layer 1 north with norms of 3 and 5, so that half the cosines with
# the layer below are 0, half are 1.
TWO = [[[EAST, NORTH], [[0.0, 3.0], [0.0, 5.0]]], [[EAST], [[0.0, 4.0]]]]


def section(path: Path) -> Section:
    (found,) = report_of(read_contents([path])).sections
    return found


def told(found: Section) -> Dict[str, str]:
    facts = found.blocks[0]
    assert isinstance(facts, Table)
    return dict(texts(facts))


def test_norms_and_cosines_are_those_of_the_vectors(tmp_path: Path) -> None:
    described = describe_layers(write_layers(tmp_path / "a.hdf5", TWO))
    assert (described.num_sentences, described.sampled_tokens) == (2, 3)
    lowest, highest = described.layers
    assert (lowest.norm, lowest.norm_deviation) == (1.0, 0.0)
    assert (highest.norm, highest.norm_deviation) == (4.0, pytest.approx(math.sqrt(2 / 3)))
    assert highest.cosine_below == highest.cosine_lowest == pytest.approx(1 / 3)
    assert lowest.cosine_below is None
    # Of pairs of two sentences half are east and east, half are east and north.
    assert set(lowest.pairs) == {0.0, 1.0} and lowest.anisotropy == pytest.approx(0.5, abs=0.05)
    assert highest.anisotropy == 1.0


def test_a_file_is_told_with_the_command_that_goes_on(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "pets.hdf5", TWO, index=["two words", "one"])
    found = section(path)
    assert found.title == "Layers pets.hdf5"
    facts = told(found)
    assert facts["sentences"] == "2" and facts["tokens"] == "3" and facts["width"] == "2"
    assert facts["kept"] == "all layers" and facts["its sentences"] == "are in it"
    assert facts["read"] == "each sentence from zeros"
    _, table, pairs, way_on = found.blocks
    assert isinstance(table, Table)
    assert texts(table)[1] == ["layer 1", "4", "0.8165", "0.3333", "0.3333", "1"]
    assert isinstance(pairs, Chart) and "layer 1 from 1 to 1, mean 1" in pairs.alternative
    assert isinstance(way_on, Paragraph)
    assert way_on.text.endswith(f"allennlp elmo-explore {path} -o layers.html")


def test_what_cannot_be_explored_says_why(tmp_path: Path) -> None:
    pooled = FACTS._replace(pool="mean", kept="top")
    found = section(write_layers(tmp_path / "pooled.hdf5", [EAST, NORTH], pooled))
    assert told(found)["vectors of"] == "sentences: the mean of tokens"
    assert "tokens" not in told(found)
    last = found.blocks[-1]
    assert isinstance(last, Paragraph) and "without --pool" in last.text
    last = section(write_layers(tmp_path / "mute.hdf5", TWO)).blocks[-1]
    assert isinstance(last, Paragraph) and "without --forget-sentences" in last.text


def test_a_large_file_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_VECTORS", 4)
    path = write_layers(tmp_path / "large.hdf5", [TWO[1]] * 17)
    described = describe_layers(path)
    assert (described.sampled_sentences, described.sampled_vectors) == (4, 4)
    assert described == describe_layers(path)
    assert told(section(path))["tokens"] == "about 17, by the mean of the sample"
    monkeypatch.setattr(module, "MAX_VECTORS", 1)
    described = describe_layers(write_layers(tmp_path / "long.hdf5", TWO[:1]))
    assert (described.sampled_tokens, described.sampled_vectors) == (2, 1)


def test_vectors_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    broken = [[EAST, [math.nan, 1.0]], [NORTH, NORTH]]
    found = section(write_layers(tmp_path / "nan.hdf5", [broken, TWO[1]]))
    assert isinstance(found.blocks[1], Table)
    assert "1 vectors with infinity or NaN are left out" in found.blocks[1].caption
    assert texts(found.blocks[1])[0][1] == "1"


@pytest.mark.parametrize("sentences", [[], [numpy.zeros((2, 0, 2))]])
def test_a_file_without_vectors_says_so(tmp_path: Path, sentences: List[Any]) -> None:
    found = section(write_layers(tmp_path / "empty.hdf5", sentences))
    assert any("no vector" in block.text for block in found.blocks if isinstance(block, Paragraph))


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="a.txt: expected .* file of layers, but it is an"):
        read_contents([tmp_path / "a.txt"])
