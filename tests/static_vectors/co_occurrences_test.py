from collections import Counter
from typing import Dict, Tuple

import pytest

from elmo_scratch import static_vectors
from elmo_scratch.static_vectors import VectorText, count_co_occurrences
from tests.static_vectors.tiny_texts import lines_of_topics, text_of

Pairs = Dict[Tuple[str, str], int]


def counted(text: VectorText, window: int) -> Pairs:
    counts = count_co_occurrences(text, window).tocoo()
    return {
        (text.words[row], text.words[column]): int(count)
        for row, column, count in zip(counts.row, counts.col, counts.data)
    }


def counted_one_by_one(lines: list, window: int) -> Pairs:
    """As one would count by hand."""
    counts: Counter = Counter()
    for line in lines:
        words = line.split()
        for place, word in enumerate(words):
            for other in range(max(0, place - window), min(len(words), place + window + 1)):
                if other != place:
                    counts[word, words[other]] += 1
    return dict(counts)


def test_neighbours_are_counted_in_both_directions() -> None:
    assert counted(text_of("a b c"), 1) == {
        ("a", "b"): 1,
        ("b", "a"): 1,
        ("b", "c"): 1,
        ("c", "b"): 1,
    }


def test_a_word_beside_itself_counts_for_both() -> None:
    assert counted(text_of("a a"), 1) == {("a", "a"): 2}


def test_sentences_keep_to_themselves() -> None:
    assert counted(text_of("a", "b", "c d"), 5) == {("c", "d"): 1, ("d", "c"): 1}


@pytest.mark.parametrize("window", [1, 2, 5, 100])
def test_it_is_what_one_would_count_one_by_one(window: int) -> None:
    lines = lines_of_topics(60)
    assert counted(text_of(*lines), window) == counted_one_by_one(lines, window)


def test_blocks_do_not_change_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["a b", *lines_of_topics(60), "c"]
    monkeypatch.setattr(static_vectors, "TOKENS_AT_ONCE", 20)
    text = text_of(*lines)
    assert len(list(text.blocks())) > 25
    assert counted(text, 3) == counted_one_by_one(lines, 3)


def test_rare_words_are_no_neighbours() -> None:
    lines = ["a x b", "a b"]
    assert counted(text_of(*lines, min_count=2), 1) == {("a", "b"): 2, ("b", "a"): 2}
