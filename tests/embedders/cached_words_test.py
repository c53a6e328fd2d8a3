import copy
import pickle
from pathlib import Path
from typing import List, Optional

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch import Elmo, batch_to_ids
from elmo_scratch.alphabet import NUM_BATCH_IDS
from elmo_scratch.embedders.elmo import CachedWords
from elmo_scratch.interop.official.options import Options
from elmo_scratch.modules.token_encoders import CharCnnEncoder
from tests.kernels.frozen_weights import Change, each_change
from tests.tiny_elmo import (
    BATCHES,
    OPTIONS,
    OfficialFiles,
    vocabulary_of,
    word_ids,
    write_files,
)

WORDS = ["@@PADDING@@", "@@UNKNOWN@@", "the", "bank", "naïve", "", "x" * 60]
UNKNOWN = 1

SENTENCES = [["the", "naïve", "bank", ""], ["bank"], [], ["x" * 60, "the"]]

DIM, CHARACTERS = 3, 20


def new_encoder(seed: int = 13) -> CharCnnEncoder:
    torch.manual_seed(seed)
    encoder = CharCnnEncoder(dim=DIM, filters=[(1, 2), (3, 4)], max_characters_per_token=CHARACTERS)
    for weight in encoder.parameters():
        torch.nn.init.normal_(weight)
    return encoder.requires_grad_(False)


@pytest.fixture
def encoder() -> CharCnnEncoder:
    return new_encoder()


def encoded(encoder: CharCnnEncoder, sentences: List[List[str]]) -> torch.Tensor:
    ids = batch_to_ids(sentences, CHARACTERS)
    return encoder(ids, (ids > 0).any(dim=-1)).vectors


def looked_up(
    cached: CachedWords, encoder: CharCnnEncoder, sentences: List[List[str]], spelled: bool = False
) -> torch.Tensor:
    characters = batch_to_ids(sentences, CHARACTERS) if spelled else None
    return cached(word_ids(sentences, WORDS), characters, encoder).vectors


@pytest.mark.parametrize("spelled", [False, True])
def test_a_look_up_gives_what_encoding_gives(spelled: bool, encoder: CharCnnEncoder) -> None:
    cached = CachedWords(WORDS, encoder)
    vectors = looked_up(cached, encoder, SENTENCES, spelled)
    assert vectors.shape == (4, 4 + 2, DIM)
    assert torch.allclose(vectors, encoded(encoder, SENTENCES), atol=1e-6)


def test_the_mask_has_room_for_the_marks(encoder: CharCnnEncoder) -> None:
    words = word_ids(SENTENCES, WORDS)
    mask = CachedWords(WORDS, encoder)(words, None, encoder).mask
    assert mask.sum(dim=1).tolist() == [4 + 2, 1 + 2, 0 + 2, 2 + 2]
    assert mask[3].tolist() == [True] * 4 + [False] * 2


def test_where_a_sentence_has_ended_there_are_zeros(encoder: CharCnnEncoder) -> None:
    tokens = CachedWords(WORDS, encoder)(word_ids(SENTENCES, WORDS), None, encoder)
    assert not tokens.vectors[~tokens.mask].any()


def test_words_are_encoded_once(encoder: CharCnnEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    cached, counted = CachedWords(WORDS, encoder), []
    original = CharCnnEncoder.encode_distinct

    def counting(self: CharCnnEncoder, ids: torch.Tensor) -> torch.Tensor:
        counted.append(len(ids))
        return original(self, ids)

    monkeypatch.setattr(CharCnnEncoder, "encode_distinct", counting)
    for _ in range(3):
        looked_up(cached, encoder, SENTENCES, spelled=True)
    assert counted == [2]  # the marks of a sentence


@pytest.mark.parametrize("number", [UNKNOWN, len(WORDS), 10_000, -3, 3, 0])
def test_a_word_that_is_not_listed_is_encoded_from_its_characters(
    number: int, encoder: CharCnnEncoder
) -> None:
    # 3 is the number of "bank": characters decide what a word is.
    sentences = [["the", "latecomer", "bank"], ["latecomer"]]
    words = torch.tensor([[2, number, 3], [number, 0, 0]])
    cached = CachedWords(WORDS, encoder)
    vectors = cached(words, batch_to_ids(sentences, CHARACTERS), encoder).vectors
    assert torch.allclose(vectors, encoded(encoder, sentences), atol=1e-6)


def test_a_word_that_is_neither_listed_nor_spelled_is_an_error(encoder: CharCnnEncoder) -> None:
    cached, words = CachedWords(WORDS, encoder), torch.tensor([[2, 7, 3], [10_000, -3, 0]])
    message = r"from 0 to 6, as in `vocab_to_cache`, but got \[7, 10000, -3\]"
    with pytest.raises(ValueError, match=message):
        cached(words, None, encoder)
    with pytest.raises(ValueError, match=message):
        cached(words, torch.zeros(2, 3, CHARACTERS, dtype=torch.long), encoder)


def test_only_the_words_that_are_neither_are_named(encoder: CharCnnEncoder) -> None:
    characters = batch_to_ids([["latecomer", "another"]], CHARACTERS)
    characters[0, 1] = 0
    with pytest.raises(ValueError, match=r"but got \[8\]"):
        CachedWords(WORDS, encoder)(torch.tensor([[7, 8]]), characters, encoder)


@pytest.mark.parametrize("shape", [(2, 3, 50), (2, 2, CHARACTERS), (1, 3, CHARACTERS), (2, 3)])
def test_characters_of_another_shape_are_an_error(shape: tuple, encoder: CharCnnEncoder) -> None:
    words = torch.tensor([[2, 3, 4], [2, 0, 0]])
    with pytest.raises(ValueError, match=r"shape \(2, 3, 20\), as for the ids of words, but got"):
        CachedWords(WORDS, encoder)(words, torch.ones(shape, dtype=torch.long), encoder)


@pytest.mark.parametrize("bad", [2**16, -(2**16), NUM_BATCH_IDS, 5000, -3])
def test_ids_that_are_no_characters_are_an_error(bad: int, encoder: CharCnnEncoder) -> None:
    cached, characters = CachedWords(WORDS, encoder), batch_to_ids([["the", "new"]], CHARACTERS)
    for spelled in (characters[0, 1, 1:2], characters[0, 1, -1:]):
        before = int(spelled)
        # Of another word's vector nothing would tell.
        spelled.fill_(before + bad if abs(bad) == 2**16 else bad)
        with pytest.raises(ValueError, match="ids of characters from 0 to 261, but got"):
            cached(torch.tensor([[2, UNKNOWN]]), characters, encoder)
        spelled.fill_(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.int8, torch.bool])
def test_ids_of_another_type_are_an_error(dtype: torch.dtype, encoder: CharCnnEncoder) -> None:
    cached, characters = CachedWords(WORDS, encoder), batch_to_ids([["the"]], CHARACTERS)
    words = torch.tensor([[2]])
    with pytest.raises(ValueError, match=f"ids of characters of the type .* but got {dtype}"):
        cached(words, characters.to(dtype), encoder)
    with pytest.raises(ValueError, match=f"ids of words of the type .* but got {dtype}"):
        cached(words.to(dtype), None, encoder)


def test_a_list_without_words_leaves_all_to_characters(encoder: CharCnnEncoder) -> None:
    cached, characters = CachedWords([], encoder), batch_to_ids(SENTENCES, CHARACTERS)
    vectors = cached((characters > 0).any(dim=-1).long(), characters, encoder).vectors
    assert torch.allclose(vectors, encoded(encoder, SENTENCES), atol=1e-6)


@each_change
def test_vectors_follow_the_weights(change: Change, encoder: CharCnnEncoder) -> None:
    cached = CachedWords(WORDS, encoder)
    before = looked_up(cached, encoder, SENTENCES)
    change(encoder, new_encoder(seed=31))
    after = looked_up(cached, encoder, SENTENCES)
    assert not torch.allclose(before, after, atol=0.1)
    assert torch.allclose(after, encoded(encoder, SENTENCES), atol=1e-6)


def test_vectors_follow_the_type_of_the_weights(encoder: CharCnnEncoder) -> None:
    cached = CachedWords(WORDS, encoder)
    encoder.double()
    vectors = looked_up(cached, encoder, SENTENCES)
    assert vectors.dtype == torch.float64
    assert torch.allclose(vectors, encoded(encoder, SENTENCES), rtol=0, atol=1e-12)


@pytest.mark.parametrize("spelled", [False, True])
def test_weights_that_are_trained_get_their_gradients(
    spelled: bool, encoder: CharCnnEncoder
) -> None:
    cached, twin = CachedWords(WORDS, encoder), new_encoder().requires_grad_()
    encoder.requires_grad_()
    looked_up(cached, encoder, SENTENCES, spelled).pow(2).sum().backward()
    encoded(twin, SENTENCES).pow(2).sum().backward()
    for (name, weight), other in zip(encoder.named_parameters(), twin.parameters(), strict=True):
        assert weight.grad is not None and weight.grad.any(), name
        assert other.grad is not None
        assert torch.allclose(weight.grad, other.grad, rtol=1e-4, atol=1e-5), name


def test_vectors_made_in_inference_mode_serve_a_training(encoder: CharCnnEncoder) -> None:
    cached, scale = CachedWords(WORDS, encoder), torch.ones((), requires_grad=True)
    encoder.convolution.embedding.weight.data.mul_(2)  # what was computed ahead is out of date
    with torch.inference_mode():
        expected = looked_up(cached, encoder, SENTENCES)
    (looked_up(cached, encoder, SENTENCES) * scale).sum().backward()
    assert scale.grad is not None
    assert scale.grad.item() == pytest.approx(expected.sum().item(), rel=1e-4)


def test_nothing_of_it_is_stored_with_the_weights(encoder: CharCnnEncoder) -> None:
    cached = CachedWords(WORDS, encoder)
    assert list(cached.state_dict()) == list(cached.parameters()) == []


def test_copies_look_up_the_same(encoder: CharCnnEncoder) -> None:
    cached = CachedWords(WORDS, encoder)
    expected = looked_up(cached, encoder, SENTENCES)
    for twin in (copy.deepcopy(cached), pickle.loads(pickle.dumps(cached))):
        assert torch.equal(looked_up(twin, encoder, SENTENCES), expected)


# Inside of `Elmo`.

VOCABULARY = vocabulary_of(BATCHES[:2])


def embedded(
    elmo: Elmo, batch: List[List[str]], words: Optional[torch.Tensor] = None
) -> torch.Tensor:
    return elmo(batch_to_ids(batch), words)["elmo_representations"][0]


def test_unknown_words_of_a_batch_get_their_own_vectors(files: OfficialFiles) -> None:
    # The vocabulary lacks most words of the last two batches; AllenNLP takes them all for one.
    plain, cached = files.ours(), files.ours(vocab_to_cache=VOCABULARY)
    for batch in BATCHES:
        words = word_ids(batch, VOCABULARY)
        assert torch.allclose(embedded(cached, batch, words), embedded(plain, batch), atol=1e-5)


def test_a_vocabulary_that_grew_later_is_no_error(files: OfficialFiles) -> None:
    grown = vocabulary_of(BATCHES)
    assert grown[: len(VOCABULARY)] == VOCABULARY and len(grown) > len(VOCABULARY)
    plain, cached = files.ours(), files.ours(vocab_to_cache=VOCABULARY)
    for batch in BATCHES:
        words = word_ids(batch, grown)
        assert torch.allclose(embedded(cached, batch, words), embedded(plain, batch), atol=1e-5)


def test_a_bilm_that_is_loaded_later_is_followed(files: OfficialFiles) -> None:
    plain, cached = files.ours(), files.ours(vocab_to_cache=VOCABULARY)
    words = word_ids(BATCHES[0], VOCABULARY)
    embedded(cached, BATCHES[0], words)
    weights = {name: -weight for name, weight in plain.state_dict().items()}
    for elmo in (plain, cached):
        elmo.load_state_dict(weights)
        elmo.reset_states()
    assert torch.allclose(
        embedded(cached, BATCHES[0], words), embedded(plain, BATCHES[0]), atol=1e-5
    )


def test_a_bilm_that_is_trained_on_gets_gradients_from_listed_words(files: OfficialFiles) -> None:
    elmo = files.ours(vocab_to_cache=VOCABULARY, requires_grad=True)
    words = word_ids(BATCHES[0], VOCABULARY)
    zeros = torch.zeros_like(batch_to_ids(BATCHES[0]))
    elmo(zeros, words)["elmo_representations"][0].pow(2).sum().backward()
    for name, parameter in elmo.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name


def test_only_a_bilm_of_characters_has_words_to_compute_ahead(tmp_path: Path) -> None:
    files = write_files(tmp_path, Options(OPTIONS.lstm, None), num_words=9)
    with pytest.raises(ConfigurationError, match="expected a biLM that encodes characters"):
        files.ours(vocab_to_cache=VOCABULARY)
