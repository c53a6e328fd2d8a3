import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import character_ids
from elmo_scratch.data.spelling import (
    WORDS_REMEMBERED,
    check_max_characters,
    spelled_word,
    spelled_words,
)

WORDS = ["The", "naïve", "鶴", "", "<S>", "</S>", "a\udc80b", "x" * 60, "The"]


@pytest.mark.parametrize("size", [3, 7, 50])
def test_words_are_spelled_as_the_alphabet_says(size: int) -> None:
    spelled = spelled_words(WORDS, size)
    assert spelled.dtype == numpy.int16
    assert spelled.tolist() == [character_ids(word, size) for word in WORDS]
    assert [spelled_word(word, size).tolist() for word in WORDS] == spelled.tolist()


def test_no_words_have_the_axis_of_characters() -> None:
    assert spelled_words([], 50).shape == (0, 50)


def test_a_word_is_spelled_once() -> None:
    assert spelled_word("remembered", 50) is spelled_word("remembered", 50)


def test_as_many_words_are_remembered_as_it_says() -> None:
    assert spelled_word.cache_info().maxsize == WORDS_REMEMBERED


def test_what_is_remembered_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        spelled_word("word", 50)[0] = 7


def test_three_ids_are_enough_for_a_sentence_mark() -> None:
    check_max_characters(3)
    with pytest.raises(ConfigurationError, match="from 3 to 4096, but got 2"):
        check_max_characters(2)
