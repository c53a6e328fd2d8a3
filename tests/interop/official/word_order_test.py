import pytest
import torch

from elmo_scratch.interop import WordList
from elmo_scratch.interop.export import OfficialWords
from elmo_scratch.modules.token_encoders import WordEncoder

UNKNOWN = "@@UNKNOWN@@"


def test_marks_come_first_and_padding_not_at_all() -> None:
    words = WordList(["@@PADDING@@", UNKNOWN, "river", "bank", "<S>", "</S>", "é"], UNKNOWN)
    official = OfficialWords.of(words)
    assert official.words == ["<S>", "</S>", "<UNK>", "river", "bank", "é"]
    assert official.ids == [4, 5, 1, 2, 3, 6]
    assert official.left_out == []


def test_an_order_that_is_official_stays() -> None:
    words = ["<S>", "</S>", "<UNK>", "river", "bank"]
    official = OfficialWords.of(WordList(["@@PADDING@@", *words], "<UNK>"))
    assert official == (words, [1, 2, 3, 4, 5], [])


@pytest.mark.parametrize("word", ["<UNK>", " ", "\n", "a\rb", "!!!MAXTERMID"])
def test_a_word_that_the_file_cannot_hold_is_left_out(word: str) -> None:
    words = WordList(["@@PADDING@@", UNKNOWN, "river", word, "bank", "<S>", "</S>"], UNKNOWN)
    official = OfficialWords.of(words)
    assert official.words == ["<S>", "</S>", "<UNK>", "river", "bank"]
    assert official.ids == [5, 6, 1, 2, 4]
    assert official.left_out == [word]


def test_vectors_follow_their_words() -> None:
    encoder = WordEncoder(dim=3, num_words=6, begin_id=4, end_id=5)
    words = WordList(["@@PADDING@@", UNKNOWN, "river", " ", "<S>", "</S>"], UNKNOWN)
    ordered = OfficialWords.of(words).reordered(encoder)
    assert ordered.mark_ids() == (1, 2)
    before, after = encoder.embedding.weight, ordered.embedding.weight
    # Padding, <S>, </S>, <UNK>, river.
    assert torch.equal(after, before[[0, 4, 5, 1, 2]])


@pytest.mark.timeout(60)
def test_a_large_vocabulary_takes_no_longer_for_each_word() -> None:
    known = [f"w{number}" for number in range(200_000)]
    official = OfficialWords.of(WordList(["", *known, "<S>", "</S>", "<UNK>"], "<UNK>"))
    assert official.words[3:] == known  # After minutes, if each were compared with all before it.
    assert official.ids == [200_001, 200_002, 200_003, *range(1, 200_001)]
