"""
Spells words as ids: the bytes of their UTF-8 form between two marks.

The released models know 256 bytes and five marks. In a batch every id is one higher, so that 0 can
say that there is no word at all.

# Source

`UnicodeCharsVocabulary` of `bilm-tf`.
"""

from typing import List, Tuple

NUM_BYTES = 256
BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = range(NUM_BYTES, NUM_BYTES + 5)
"""The marks, as the released models number them."""

NUM_CHARACTERS = NUM_BYTES + 5
"""Bytes and marks: rows of `char_embed` in a weight file, and `n_characters` of a training."""

NUM_BATCH_IDS = NUM_CHARACTERS + 1
"""All ids of a batch, 0 (the mask) included: `n_characters` of a released model."""

PADDING_ID = PADDING + 1
"""The padding within a word, as an id in a batch."""

MAX_CHARACTERS_PER_TOKEN = 50
"""The released models' value: 48 bytes and two marks."""

CHARACTERS_PER_TOKEN = range(3, 4097)
"""
How many ids a word may have. A sentence mark needs room between two word marks, and an untrusted
file must not ask for more than fits into memory.
"""

BEGIN_SENTENCE_WORD, END_SENTENCE_WORD = "<S>", "</S>"
"""Words that stand for the sentence marks, spelled as in the vocabulary files of `bilm-tf`."""

_SENTENCE_MARKS = {BEGIN_SENTENCE_WORD: BEGIN_SENTENCE, END_SENTENCE_WORD: END_SENTENCE}


def character_ids(word: str, max_characters: int = MAX_CHARACTERS_PER_TOKEN) -> List[int]:
    """
    Spells a word. Bytes for which there is no room are left out, as in the released models, even in
    the middle of a character. Halves of surrogate pairs, which UTF-8 can't encode, are left out
    too.

    # Parameters

    word : `str`
        Any word. `BEGIN_SENTENCE_WORD` and `END_SENTENCE_WORD` become the sentence marks.
    max_characters : `int`, optional (default = `50`, the released models' value)
        How many ids to return.

    # Returns

    `List[int]`
        `max_characters` ids as in a batch, from 1 to `NUM_CHARACTERS`.
    """
    if word in _SENTENCE_MARKS:
        spelled = [_SENTENCE_MARKS[word]]
    else:
        spelled = list(word.encode("utf-8", "ignore")[: max_characters - 2])
    marked = [BEGIN_WORD, *spelled, END_WORD]
    return [number + 1 for number in marked] + [PADDING_ID] * (max_characters - len(marked))


def sentence_marks(max_characters: int = MAX_CHARACTERS_PER_TOKEN) -> Tuple[List[int], List[int]]:
    """The ids of the words that mark the beginning and the end of a sentence."""
    return (
        character_ids(BEGIN_SENTENCE_WORD, max_characters),
        character_ids(END_SENTENCE_WORD, max_characters),
    )
