import pytest
import torch

from elmo_scratch.alphabet import character_ids
from elmo_scratch.data import batch_to_ids
from elmo_scratch.data.spelling import CharacterWordIndexer

SENTENCES = [["The", "river"], [], ["naïve", "extraordinarily", "<S>"]]
CHARACTERS = 11


def test_words_are_spelled_by_their_characters() -> None:
    batch = CharacterWordIndexer(CHARACTERS).spell(SENTENCES)
    ids = batch.token_ids()
    assert ids.dtype == torch.int16
    assert torch.equal(ids.long(), batch_to_ids(SENTENCES, CHARACTERS))
    assert ids[2, 1].tolist() == character_ids("extraordinarily", CHARACTERS)
    assert torch.equal(batch.mask, (ids > 0).any(dim=-1))


def test_each_word_is_spelled_once() -> None:
    batch = CharacterWordIndexer(CHARACTERS).spell([["the", "river"], ["river", "the", "end"]])
    assert batch.ids.tolist() == [[0, 1, 0], [1, 0, 2]]
    assert batch.words is not None
    assert batch.words.tolist() == [
        character_ids(word, CHARACTERS) for word in ("the", "river", "end")
    ]


def test_there_may_be_no_word() -> None:
    word_indexer = CharacterWordIndexer(CHARACTERS)
    assert word_indexer.spell([]).token_ids().shape == (0, 0, CHARACTERS)
    assert word_indexer.spell([[], []]).token_ids().shape == (2, 0, CHARACTERS)


def test_a_sentence_that_is_not_split_is_an_error() -> None:
    with pytest.raises(ValueError, match="a sequence of words"):
        CharacterWordIndexer(CHARACTERS).spell(["The river"])
