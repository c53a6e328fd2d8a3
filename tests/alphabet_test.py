import sys
from typing import List

import pytest
from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper

from elmo_scratch.alphabet import (
    CHARACTERS_PER_TOKEN,
    MAX_CHARACTERS_PER_TOKEN,
    NUM_BATCH_IDS,
    NUM_CHARACTERS,
    PADDING_ID,
    character_ids,
    sentence_marks,
)

BEGIN, END, PADDING = 259, 260, 261
"""The marks of a word and what fills it up, as in a batch."""

WORDS = [
    "",
    " ",
    "a",
    "the",
    "The",
    "U.S.",
    "don't",
    "\t\n",
    "\0",
    "\x7f",
    "<s>",
    "<S> ",
    "S",
    "<S",
    "</s>",
    "<UNK>",
    "@@PADDING@@",
    "naïve",
    "nai\u0308ve",
    "Ærøskøbing",
    "Ελλάδα",
    "鶴",
    "ほほほ",
    "שלום",
    "🦩",
    "👩🏽‍🚀",
    "\ufeff",
    "\ufffd",
    "\U0010ffff",
    "\ud800",
    "\udfffx",
    "a\udc80b",
    "\ud83e\udda9",
    "x" * 47,
    "x" * 48,
    "x" * 49,
    "x" * 50,
    "x" * 10_000,
    "é" * 24,
    "é" * 25,
    "x" + "é" * 24,
    "鶴" * 5_000,
    "🦩" * 12,
    "xyz" + "🦩" * 12,
]


def allennlp_ids(word: str) -> List[int]:
    return ELMoCharacterMapper().convert_word_to_char_ids(word)


def test_a_word_is_its_bytes_plus_one_between_two_marks() -> None:
    assert character_ids("cab", 8) == [BEGIN, 100, 98, 99, END, PADDING, PADDING, PADDING]


def test_a_character_beyond_ascii_is_all_of_its_bytes() -> None:
    # é is the bytes C3 A9, 鶴 is E9 B6 B4, 🦩 is F0 9F A6 A9.
    assert character_ids("é", 5) == [BEGIN, 0xC3 + 1, 0xA9 + 1, END, PADDING]
    assert character_ids("鶴", 5) == [BEGIN, 0xE9 + 1, 0xB6 + 1, 0xB4 + 1, END]
    assert character_ids("🦩", 6) == [BEGIN, 0xF0 + 1, 0x9F + 1, 0xA6 + 1, 0xA9 + 1, END]


def test_an_empty_word_is_its_two_marks() -> None:
    assert character_ids("", 4) == [BEGIN, END, PADDING, PADDING]


def test_the_least_byte_is_not_what_masks() -> None:
    assert character_ids("\0", 4) == [BEGIN, 1, END, PADDING]


def test_a_word_is_cut_to_leave_room_for_its_marks() -> None:
    assert character_ids("abc", 5) == [BEGIN, 98, 99, 100, END]
    assert character_ids("abcd", 5) == [BEGIN, 98, 99, 100, END]


def test_a_word_is_cut_even_in_the_middle_of_a_character() -> None:
    assert character_ids("aé", 4) == [BEGIN, 98, 0xC3 + 1, END]


def test_halves_of_surrogate_pairs_are_left_out() -> None:
    assert character_ids("a\ud800b", 6) == character_ids("ab", 6)
    assert character_ids("\udfff", 6) == character_ids("", 6)


def test_sentence_marks_are_words_of_one_character() -> None:
    assert character_ids("<S>", 5) == [BEGIN, 257, END, PADDING, PADDING]
    assert character_ids("</S>", 5) == [BEGIN, 258, END, PADDING, PADDING]


def test_only_the_marks_themselves_are_marks() -> None:
    assert character_ids("<S", 5) == [BEGIN, ord("<") + 1, ord("S") + 1, END, PADDING]
    assert character_ids("<s>", 5) == [BEGIN, ord("<") + 1, ord("s") + 1, ord(">") + 1, END]


def test_a_word_has_as_many_ids_as_the_released_models_want() -> None:
    assert MAX_CHARACTERS_PER_TOKEN == 50
    assert len(character_ids("x")) == len(character_ids("x" * 10_000)) == 50


def test_words_are_spelled_as_allennlp_spells_them() -> None:
    others = [word for word in WORDS if character_ids(word) != allennlp_ids(word)]
    assert others == []


def test_characters_are_spelled_as_allennlp_spells_them() -> None:
    numbers = [*range(2**9), *range(2**9, sys.maxunicode + 1, 97)]
    others = [
        number for number in numbers if character_ids(chr(number)) != allennlp_ids(chr(number))
    ]
    assert others == []


def test_sentence_marks_are_those_of_allennlp() -> None:
    begin, end = sentence_marks()
    assert begin == character_ids("<S>") == allennlp_ids(ELMoCharacterMapper.bos_token)
    assert end == character_ids("</S>") == allennlp_ids(ELMoCharacterMapper.eos_token)


@pytest.mark.parametrize("word", ["", "a", "naïve", "🦩", "x" * 48, "é" * 600, "<S>", "</S>"])
def test_words_of_any_length_fit_into_any_number_of_ids(word: str) -> None:
    for max_characters in (CHARACTERS_PER_TOKEN[0], 4, 20, 49, 51, 1000):
        assert_fits(word, max_characters)


def assert_fits(word: str, max_characters: int) -> None:
    ids = character_ids(word, max_characters)
    assert len(ids) == max_characters
    assert ids[0] == BEGIN and ids.count(BEGIN) == ids.count(END) == 1
    end = ids.index(END)
    assert ids[end + 1 :] == [PADDING] * (max_characters - end - 1)
    middle = [257] if word == "<S>" else [258] if word == "</S>" else None
    spelled = [byte + 1 for byte in word.encode("utf-8")][: max_characters - 2]
    assert ids[1:end] == (middle or spelled)


@pytest.mark.parametrize("max_characters", [CHARACTERS_PER_TOKEN[0], 20, 50, 70])
def test_sentence_marks_have_as_many_ids_as_words(max_characters: int) -> None:
    for mark, number in zip(sentence_marks(max_characters), (257, 258)):
        assert mark == [BEGIN, number, END] + [PADDING] * (max_characters - 3)


def test_ids_are_those_that_a_batch_may_hold() -> None:
    ids = {number for word in WORDS for number in character_ids(word)}
    ids |= {number for mark in sentence_marks() for number in mark}
    assert min(ids) == 1
    assert max(ids) == NUM_CHARACTERS == NUM_BATCH_IDS - 1 == PADDING_ID == PADDING
