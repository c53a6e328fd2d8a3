import json
import os
from io import BytesIO
from pathlib import Path
from typing import IO, Dict, List, Tuple

import numpy
import pytest

from elmo_scratch.interop.layer_files import sentence_map
from elmo_scratch.interop.layer_files.sentence_map import IndexText, is_last


def text_of(entries: List[Tuple[str, str]], folder: Path) -> bytes:
    with IndexText.of(iter(entries), folder) as text:
        whole = b"".join(text.pieces())
        assert len(whole) == text.size
        assert b"".join(text.pieces()) == whole
    assert os.listdir(folder) == []
    return whole


@pytest.mark.parametrize(
    "entries",
    [
        {},
        {"one": "0"},
        {"one": "0", "two": "1", 'a "quoted" \\ word': "2", "{": "}"},
        {"Où est la crêpe ?": "0", "鹤 在 飞": "1", "🦩 !": "2", "a\u2028b \x01": "3"},
        {"\ud800": "0"},
    ],
)
def test_it_is_the_json_of_the_map(entries: Dict[str, str], tmp_path: Path) -> None:
    assert text_of(list(entries.items()), tmp_path).decode() == json.dumps(entries)


def test_of_equal_sentences_the_last_one_counts_and_is_there_once(tmp_path: Path) -> None:
    sentences = [f"sentence {number % 7}" for number in range(1000)]
    text = text_of([(sentence, str(key)) for key, sentence in enumerate(sentences)], tmp_path)
    expected = {sentence: str(key) for key, sentence in enumerate(sentences)}
    assert json.loads(text) == expected
    assert len(json.loads(text, object_pairs_hook=list)) == len(expected) == 7


def written(rows: numpy.ndarray) -> IO[bytes]:
    digests = BytesIO()
    digests.write(rows.astype("uint64").tobytes())
    return digests


@pytest.mark.parametrize("read_at_once", [7, 2000, 2**16])
def test_the_last_of_equal_digests_is_known(
    read_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentence_map, "READ_AT_ONCE", read_at_once)
    rows = numpy.random.default_rng(13).integers(0, 40, size=(2000, 2))
    last = {tuple(row): place for place, row in enumerate(rows.tolist())}
    (places,) = numpy.nonzero(is_last(written(rows)))
    assert sorted(last.values()) == places.tolist()


def test_digests_that_agree_in_one_half_differ() -> None:
    rows = numpy.array([[1, 2], [1, 3], [2, 3], [1, 2]])
    assert is_last(written(rows)).tolist() == [False, True, True, True]
