import base64
import json
import re
from pathlib import Path
from typing import Any, List, Optional, Sequence, Tuple

import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.explore import ExportedTokens, layer_page, nearest, read_labels
from elmo_scratch.explore import page as module
from elmo_scratch.explore.page import FEWEST_FOR_A_MAP, num_steps, page_data
from elmo_scratch.interop import LayerFile
from tests.explore.tiny_explorations import SENTENCES, write_explored
from tests.interop.layer_files.tiny_layers import FACTS, write_layers


def unpacked(packed: Tuple[str, str]) -> numpy.ndarray:
    return numpy.frombuffer(base64.b64decode(packed[1]), packed[0])


def data_of(path: Path, k: int = 3, labels: Optional[Sequence[str]] = None) -> Any:
    with LayerFile(path) as layers:
        return page_data(ExportedTokens(layers), k, labels, lambda _: None)


def page_of(path: Path, **settings: Any) -> str:
    with LayerFile(path) as layers:
        tokens = ExportedTokens(layers, **settings)
        return layer_page(tokens, k=3, labels=["<i>"] * len(tokens.sentences)).decode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_explored(tmp_path / "layers <&>.hdf5")


def test_the_page_has_the_neighbours_of_each_token(path: Path) -> None:
    data = data_of(path)
    words = " ".join(SENTENCES).split()
    forms = list(dict.fromkeys(words))
    places = [(n, p) for n, line in enumerate(SENTENCES) for p in range(len(line.split()))]
    for layer, of_layer in enumerate(data["layers"]):
        rows = unpacked(of_layer["rows"]).reshape(-1, of_layer["k"])
        cosines = unpacked(of_layer["cosines"]).reshape(-1, of_layer["k"]) / 1000
        assert len(rows) == (len(forms) if layer == 0 else len(words))
        for row, word in enumerate(words):
            expected = nearest(path, *places[row], layer, k=3, each_word_once=layer == 0)
            entry = forms.index(word) if layer == 0 else row
            assert [places[found] for found in rows[entry]] == [one[:2] for one in expected]
            of_expected = [one.cosine for one in expected]
            assert cosines[entry] == pytest.approx(of_expected, abs=0.00051)


def test_the_page_has_the_cosines_between_occurrences(path: Path) -> None:
    data = data_of(path)
    sizes, rows = unpacked(data["groups"]["sizes"]), unpacked(data["groups"]["rows"])
    words = [word.casefold() for word in " ".join(SENTENCES).split()]
    groups = [group.tolist() for group in numpy.split(rows, numpy.cumsum(sizes)[:-1])]
    assert {words[group[0]]: group for group in groups}["bank"] == [4, 10, 23, 28]
    pairs = unpacked(data["layers"][2]["pairs"]) / 100
    assert len(pairs) == sum(len(group) * (len(group) - 1) // 2 for group in groups)
    first = groups.index([4, 10, 23, 28])
    start = sum(len(group) * (len(group) - 1) // 2 for group in groups[:first])
    found = {one[:2]: one.cosine for one in nearest(path, 0, 4, 2, k=100)}
    expected = [found[place] for place in ((1, 1), (2, 8), (4, 1))]
    assert pairs[start : start + 3] == pytest.approx(expected, abs=0.0051)
    points = unpacked(data["layers"][2]["points"])
    assert len(points) == 2 * sum(size for size in sizes if size >= FEWEST_FOR_A_MAP)
    assert numpy.abs(points).max() == 127


def test_labels_are_numbered_by_their_frequency(path: Path) -> None:
    labels = ["money", "river", "money", "", "river", "money"]
    found = data_of(path, labels=labels)["labels"]
    assert found["names"] == ["money", "river", ""]
    assert unpacked(found["of"]).tolist() == [0, 1, 0, 2, 1, 0]


@pytest.mark.parametrize("kept", ["all", "top"])
def test_all_steps_are_told(kept: str, tmp_path: Path) -> None:
    path = write_explored(tmp_path / "layers.hdf5", facts=FACTS._replace(kept=kept))
    with LayerFile(path) as layers:
        tokens = ExportedTokens(layers)
        steps: List[int] = []
        layer_page(tokens, k=3, done=steps.append)
        assert sum(steps) == num_steps(tokens) == (3 if kept == "all" else 1)


def test_the_same_file_gives_the_same_bytes(path: Path) -> None:
    assert page_of(path) == page_of(path)


def test_what_comes_from_data_is_text(path: Path) -> None:
    page = page_of(path)
    assert "alert(1)<" not in page and "<b>bold" not in page and "<i>" not in page
    assert "<title>Layers of layers &lt;&amp;&gt;.hdf5</title>" in page
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    assert json.loads(data)["sentences"] == SENTENCES
    # One of the data, and one that runs.
    assert len(re.findall("<script", page)) == 2


def test_the_page_asks_for_nothing_else(path: Path) -> None:
    page = page_of(path)
    assert "default-src 'none'" in page
    assert set(re.findall(r"https?://[^\"'\s]*", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.findall(r"(src|href)=", page)


def test_a_page_of_the_first_sentences_says_so(path: Path) -> None:
    page = " ".join(page_of(path, max_sentences=2).split())
    assert "15 tokens of the first 2 of 6 sentences, 3 layers of 4 numbers." in page
    page = " ".join(page_of(path, max_tokens=17).split())
    assert "15 tokens of the first 2 of 6 sentences" in page
    assert "9 tokens of the first 1 of 6" in " ".join(page_of(path, max_tokens=1).split())


def test_a_line_that_a_page_has_no_room_for_is_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_TOKENS", 8)
    with pytest.raises(ConfigurationError, match="room for 8 tokens, .* has 9.*sentence a line"):
        page_of(path, max_tokens=8)


def test_one_token_alone_has_a_page(tmp_path: Path) -> None:
    path = write_explored(tmp_path / "one.hdf5", ["alone"])
    assert [layer["k"] for layer in data_of(path)["layers"]] == [0, 0, 0]


def test_labels_belong_to_lines(tmp_path: Path) -> None:
    path = write_explored(tmp_path / "layers.hdf5", ["a b", "c", "a b", "d"])
    labels = tmp_path / "labels.txt"
    labels.write_text("zero\n one \ntwo\nthree\n", encoding="utf-8")
    with LayerFile(path) as layers:
        tokens = ExportedTokens(layers, max_sentences=2)
        assert read_labels(labels, tokens) == ["one", "two"]
        labels.write_text("zero\none\n", encoding="utf-8")
        with pytest.raises(ConfigurationError, match="each of the 4 lines.*but there are 2"):
            read_labels(labels, tokens)


def test_a_byte_order_mark_is_no_part_of_a_label(tmp_path: Path) -> None:
    path = write_explored(tmp_path / "layers.hdf5", ["a b", "c"])
    labels = tmp_path / "labels.txt"
    labels.write_text("\ufeffzero\none\n", encoding="utf-8")
    with LayerFile(path) as layers:
        assert read_labels(labels, ExportedTokens(layers)) == ["zero", "one"]


def test_sentences_for_keys_have_no_labels(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["a b"], keys=["a b"], has_index=False)
    with LayerFile(path) as layers:
        with pytest.raises(ConfigurationError, match="without --use-sentence-keys"):
            read_labels(tmp_path / "labels.txt", ExportedTokens(layers))
