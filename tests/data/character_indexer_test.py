from typing import Dict, List

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch, Instance, Token, TokenIndexer, Vocabulary
from allennlp.data.dataset_readers import DatasetReader
from allennlp.data.fields import ListField, TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer, SingleIdTokenIndexer

from elmo_scratch.data import CharacterIndexer

SENTENCES: List[List[str]] = [
    ["The", "sentence", "."],
    ["naïve", "Ελλάδα", "鶴", "🦩", "a\udc80b"],
    [],
    ["", " ", "\0", "<S>", "</S>", "<s>", "x" * 10_000, "鶴" * 5_000],
]


def tokens_of(words: List[str]) -> List[Token]:
    return [Token(word) for word in words]


def batch_of(sentences: List[List[str]], **indexers: TokenIndexer) -> Dict[str, torch.Tensor]:
    """What a model is given for the texts, for each name of an indexer its first tensor."""
    fields = [TextField(tokens_of(words), indexers) for words in sentences]
    batch = Batch([Instance({"text": field}) for field in fields])
    batch.index_instances(Vocabulary())
    tensors = batch.as_tensor_dict()["text"]
    return {name: next(iter(tensors[name].values())) for name in indexers}


def test_ids_are_those_of_allennlps_indexer() -> None:
    ours, theirs, vocab = CharacterIndexer(), ELMoTokenCharactersIndexer(), Vocabulary()
    for words in SENTENCES:
        indexed = ours.tokens_to_indices(tokens_of(words), vocab)
        expected = theirs.tokens_to_indices(tokens_of(words), vocab)
        assert list(indexed) == list(expected) == ["elmo_tokens"]
        assert [list(ids) for ids in indexed["elmo_tokens"]] == expected["elmo_tokens"]


def test_a_batch_of_texts_is_padded_as_by_allennlps_indexer() -> None:
    tensors = batch_of(SENTENCES, ours=CharacterIndexer(), theirs=ELMoTokenCharactersIndexer())
    assert tensors["ours"].shape == (4, 8, 50)
    assert tensors["ours"].dtype == torch.int64
    assert torch.equal(tensors["ours"], tensors["theirs"])
    assert not tensors["ours"][2].any()


def test_a_text_can_be_padded_to_a_least_length() -> None:
    tensors = batch_of(
        [["a"], ["b", "c"]],
        ours=CharacterIndexer(token_min_padding_length=4),
        theirs=ELMoTokenCharactersIndexer(token_min_padding_length=4),
    )
    assert tensors["ours"].shape == (2, 4, 50)
    assert torch.equal(tensors["ours"], tensors["theirs"])


def test_words_of_another_indexer_lie_beside_their_characters() -> None:
    tensors = batch_of(SENTENCES, characters=CharacterIndexer(), words=SingleIdTokenIndexer())
    assert torch.equal((tensors["characters"] > 0).any(dim=-1), tensors["words"] > 0)


def test_a_text_can_be_cut_to_a_length() -> None:
    ours, theirs, vocab = CharacterIndexer(), ELMoTokenCharactersIndexer(), Vocabulary()
    tokens, length = tokens_of(["a", "b", "c"]), {"elmo_tokens": 2}
    assert torch.equal(
        ours.as_padded_tensor_dict(ours.tokens_to_indices(tokens, vocab), length)["elmo_tokens"],
        theirs.as_padded_tensor_dict(theirs.tokens_to_indices(tokens, vocab), length)[
            "elmo_tokens"
        ],
    )


@pytest.mark.parametrize("size", [3, 7, 20, 64])
def test_a_word_has_as_many_ids_as_the_bilm_reads(size: int) -> None:
    ids = batch_of(SENTENCES, text=CharacterIndexer(max_characters_per_token=size))["text"]
    whole = batch_of(SENTENCES, text=CharacterIndexer())["text"]
    assert ids.shape == (4, 8, size)
    assert torch.equal((ids > 0).any(dim=-1), (whole > 0).any(dim=-1))
    # "The" and "." of the first text: bytes for which there is no room are left out.
    bytes_of_the = [byte + 1 for byte in b"The"][: size - 2]
    assert ids[0, 0].tolist() == ([259, *bytes_of_the, 260] + [261] * size)[:size]
    assert ids[0, 2].tolist() == [259, ord(".") + 1, 260] + [261] * (size - 3)


def test_words_of_two_sizes_are_not_confused() -> None:
    short, long = CharacterIndexer(max_characters_per_token=5), CharacterIndexer()
    tensors = batch_of([["same", "same"]], short=short, long=long)
    assert tensors["short"].shape == (1, 2, 5)
    assert tensors["long"].shape == (1, 2, 50)


def test_ids_changed_in_a_batch_do_not_change_the_word() -> None:
    before = batch_of([["word"]], text=CharacterIndexer())["text"]
    expected = before.clone()
    before.fill_(7)
    assert torch.equal(batch_of([["word"]], text=CharacterIndexer())["text"], expected)


def test_a_list_of_texts_is_padded_too() -> None:
    def padded(indexer: TokenIndexer) -> torch.Tensor:
        texts = [["a", "b"], ["c"]], [["d", "e", "f"]]
        lists = [
            ListField([TextField(tokens_of(text), {"text": indexer}) for text in one])
            for one in texts
        ]
        batch = Batch([Instance({"texts": one}) for one in lists])
        batch.index_instances(Vocabulary())
        return batch.as_tensor_dict()["texts"]["text"]["elmo_tokens"]

    ours = padded(CharacterIndexer())
    assert ours.shape == (2, 2, 3, 50)
    assert torch.equal(ours, padded(ELMoTokenCharactersIndexer()))


def test_the_vocabulary_learns_nothing() -> None:
    counter: Dict[str, Dict[str, int]] = {}
    CharacterIndexer().count_vocab_items(Token("word"), counter)
    assert counter == {}
    assert CharacterIndexer().get_empty_token_list() == {"elmo_tokens": []}


def test_a_config_names_it() -> None:
    params = Params({"type": "elmo_scratch_characters", "max_characters_per_token": 20})
    indexer = TokenIndexer.from_params(params)
    assert isinstance(indexer, CharacterIndexer)
    assert indexer.max_characters_per_token == 20
    assert indexer == CharacterIndexer(max_characters_per_token=20)
    assert indexer != CharacterIndexer()


def test_a_reader_of_a_config_uses_it() -> None:
    indexers = {"elmo": {"type": "elmo_scratch_characters"}}
    reader = DatasetReader.from_params(Params({"type": "ag_news", "token_indexers": indexers}))
    instance = reader.text_to_instance("Two words")
    reader.apply_token_indexers(instance)
    instance.index_fields(Vocabulary())
    assert instance.as_tensor_dict()["text"]["elmo"]["elmo_tokens"].shape == (2, 50)


def test_a_token_without_text_is_an_error() -> None:
    with pytest.raises(ValueError, match="null text"):
        CharacterIndexer().tokens_to_indices([Token(text_id=3)], Vocabulary())


@pytest.mark.parametrize("size", [2, 0, -1])
def test_too_few_ids_for_a_sentence_mark_are_an_error(size: int) -> None:
    with pytest.raises((ConfigurationError, ValueError), match="max_characters_per_token"):
        CharacterIndexer(max_characters_per_token=size)
