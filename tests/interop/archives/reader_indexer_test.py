from typing import Any, Dict

import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import PretrainedBiLm
from elmo_scratch.interop.archives.archive_indexer import ReaderWordIndexer

SENTENCES = [["the", "bank"], [], ["zzyzx", "of", "the", "River"]]


def speller_of(pretrained: PretrainedBiLm) -> ReaderWordIndexer:
    encoder = pretrained.bilm.token_encoder
    return ReaderWordIndexer(pretrained.reader, pretrained.vocab, encoder)


def test_words_have_the_numbers_that_they_had_in_training(pretrained: PretrainedBiLm) -> None:
    words = pretrained.blueprint.words.words
    batch = speller_of(pretrained).spell(SENTENCES)
    known = [[words.index("the"), words.index("bank"), 0, 0], [0] * 4]
    assert batch.ids[:2].tolist() == known
    # Lower case, as the reader's indexer has it, and one word for all that are unknown.
    assert [words[number] for number in batch.ids[2]] == ["@@UNKNOWN@@", "of", "the", "river"]
    assert batch.lengths == [2, 0, 4]
    assert torch.equal(batch.mask, batch.ids > 0)


def test_there_may_be_no_word(pretrained: PretrainedBiLm) -> None:
    word_indexer = speller_of(pretrained)
    assert word_indexer.spell([]).mask.shape == (0, 0)
    assert word_indexer.spell([[], []]).mask.shape == (2, 0)


def test_words_may_come_in_arrays(pretrained: PretrainedBiLm) -> None:
    word_indexer = speller_of(pretrained)
    arrays = [numpy.array(sentence, dtype=str) for sentence in SENTENCES]
    assert torch.equal(word_indexer.spell(arrays).ids, word_indexer.spell(SENTENCES).ids)  # type: ignore[arg-type]
    assert word_indexer.spell(arrays[1:2]).mask.shape == (1, 0)  # type: ignore[arg-type]


def test_a_long_sentence_is_not_shortened(pretrained: PretrainedBiLm) -> None:
    pretrained.reader.max_tokens = 3  # type: ignore[attr-defined]
    assert speller_of(pretrained).spell([["the"] * 211]).ids.shape == (1, 211)


def test_an_indexers_padding_is_cut_off(pretrained: PretrainedBiLm) -> None:
    indexers: Dict[str, Any] = pretrained.reader.token_indexers  # type: ignore[attr-defined]
    indexers["tokens"]._token_min_padding_length = 9
    assert speller_of(pretrained).spell([["the", "bank"]]).ids.shape == (1, 2)


def test_indexers_that_make_something_else_are_an_error(pretrained: PretrainedBiLm) -> None:
    indexers: Dict[str, Any] = pretrained.reader.token_indexers  # type: ignore[attr-defined]
    indexers["tokens"].get_empty_token_list = dict
    indexers["tokens"].tokens_to_indices = lambda tokens, vocab: {"letters": [1 for _ in tokens]}
    with pytest.raises(ConfigurationError, match=r"indexers \['tokens'\] make \['letters'\]"):
        speller_of(pretrained).spell(SENTENCES)


def test_a_sentence_that_is_not_split_is_an_error(pretrained: PretrainedBiLm) -> None:
    with pytest.raises(ValueError, match="a sequence of words"):
        speller_of(pretrained).spell(["The river"])
