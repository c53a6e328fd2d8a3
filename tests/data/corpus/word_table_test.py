from pathlib import Path
from typing import List

import numpy
import pytest

from elmo_scratch.data.corpus import WordTable
from elmo_scratch.data.corpus import preparation as module
from elmo_scratch.data.corpus.preparation import write_words

WORDS = ["the", "Größe", "a\0b", "語", "😀x", "z" * 60, "\ufeff"]


@pytest.fixture(params=[2**16, 3])
def table(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> WordTable:
    """Read and written at once, or three words at a time."""
    monkeypatch.setattr(module, "_WORDS_AT_ONCE", request.param)
    write_words(WORDS, numpy.arange(len(WORDS), 0, -1), tmp_path)
    return WordTable(tmp_path)


def test_it_holds_the_words_in_their_order(table: WordTable) -> None:
    assert list(table) == WORDS
    assert len(table) == len(WORDS)
    assert [table[number] for number in range(len(WORDS))] == WORDS
    assert "語" in table and "no" not in table


def test_it_counts_from_the_end_too(table: WordTable) -> None:
    assert table[-1] == WORDS[-1]
    assert table[-len(WORDS)] == WORDS[0]


@pytest.mark.parametrize("number", [len(WORDS), -len(WORDS) - 1])
def test_a_number_that_no_word_has_is_an_error(table: WordTable, number: int) -> None:
    with pytest.raises(IndexError, match=f"there are 7 words, but number {number}"):
        table[number]


def test_it_knows_counts_and_lengths_in_bytes(table: WordTable) -> None:
    assert table.counts.tolist() == [7, 6, 5, 4, 3, 2, 1]
    assert table.counts.dtype == numpy.int64
    assert table.lengths().tolist() == [3, 7, 3, 3, 5, 60, 3]


def test_words_lie_end_to_end(table: WordTable) -> None:
    assert table.text.tobytes().decode("utf-8") == "".join(WORDS)
    sliced: List[str] = [
        table.text[start:end].tobytes().decode("utf-8")
        for start, end in zip(table.starts, table.starts[1:])
    ]
    assert sliced == WORDS
