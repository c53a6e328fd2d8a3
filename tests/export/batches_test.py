import random
from typing import List

import pytest

from elmo_scratch.export.pipeline import (
    BATCHES_SORTED_AT_ONCE,
    SENTENCES_SORTED_AT_ONCE,
    TOKENS_SORTED_AT_ONCE,
    Batch,
    blocks_of_batches,
)
from elmo_scratch.export.plan import ExportSettings
from elmo_scratch.export.text import Sentence


def sentences_of(*lengths: int) -> List[Sentence]:
    """Sentences of so many tokens."""
    return [
        Sentence(number, " ".join(["w"] * length), ["w"] * length)
        for number, length in enumerate(lengths)
    ]


def blocks(
    sentences: List[Sentence], settings: ExportSettings, is_carried: bool = False
) -> List[List[Batch]]:
    return list(blocks_of_batches(iter(sentences), settings, is_carried))


def test_where_states_are_carried_batches_follow_the_text() -> None:
    found = blocks(sentences_of(3, 9, 1, 2, 5), ExportSettings(batch_size=2), is_carried=True)
    numbers = [[[one.number for one in batch] for batch in block] for block in found]
    assert numbers == [[[0, 1]], [[2, 3]], [[4]]]


def test_otherwise_sentences_of_like_length_meet() -> None:
    found = blocks(sentences_of(3, 9, 1, 2, 8), ExportSettings(batch_size=2))
    numbers = [[[one.number for one in batch] for batch in block] for block in found]
    assert numbers == [[[1, 4], [0, 3], [2]]]


@pytest.mark.parametrize("max_tokens", [1, 10, 64])
def test_a_batch_has_no_more_tokens_than_it_may(max_tokens: int) -> None:
    draw = random.Random(0)
    found = blocks(
        sentences_of(*(draw.randint(1, 20) for _ in range(500))),
        ExportSettings(max_tokens=max_tokens),
    )
    for block in found:
        for batch in block:
            padded = len(batch) * max(len(sentence.tokens) for sentence in batch)
            assert padded <= max_tokens or len(batch) == 1


@pytest.mark.parametrize("settings", [ExportSettings(batch_size=3), ExportSettings(max_tokens=7)])
def test_every_sentence_comes_once_and_each_block_follows_the_text(
    settings: ExportSettings,
) -> None:
    draw = random.Random(1)
    sentences = sentences_of(*(draw.randint(1, 9) for _ in range(700)))
    found = blocks(sentences, settings)
    assert len(found) > 2
    numbers = [sorted(one.number for batch in block for one in batch) for block in found]
    assert [number for block in numbers for number in block] == list(range(700))


def test_a_block_is_bounded() -> None:
    found = blocks(sentences_of(*[4] * 1000), ExportSettings(batch_size=2))
    assert max(len(block) for block in found) == BATCHES_SORTED_AT_ONCE


@pytest.mark.parametrize(
    "settings", [ExportSettings(batch_size=1000), ExportSettings(max_tokens=10**6)]
)
def test_so_is_one_of_large_batches(settings: ExportSettings) -> None:
    many = SENTENCES_SORTED_AT_ONCE * 2 + 1
    sizes = [sum(map(len, block)) for block in blocks(sentences_of(*[1] * many), settings)]
    assert sizes == [SENTENCES_SORTED_AT_ONCE, SENTENCES_SORTED_AT_ONCE, 1]


def test_so_is_one_of_long_sentences() -> None:
    words = ["w"] * (TOKENS_SORTED_AT_ONCE // 4)
    sentences = [Sentence(number, "", words) for number in range(9)]
    assert [sum(map(len, block)) for block in blocks(sentences, ExportSettings())] == [4, 4, 1]


def test_a_batch_may_be_larger_than_that() -> None:
    many = SENTENCES_SORTED_AT_ONCE + 5
    (block,) = blocks(sentences_of(*[1] * many), ExportSettings(batch_size=many))
    assert list(map(len, block)) == [many]
