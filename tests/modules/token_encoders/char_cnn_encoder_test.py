import copy
import pickle
from typing import Any, Dict, List

import pytest
import torch
from allennlp.common import Params

from elmo_scratch.alphabet import NUM_BATCH_IDS, character_ids
from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules.token_encoders import (
    CharCnnEncoder,
    TokenEncoder,
    char_cnn_encoder,
    spelled_word_encoder,
)
from tests.kernels.frozen_weights import (
    EACH_INDEPENDENT_PRECISION,
    Change,
    each_change,
    needs_independent_rows,
)

CHARACTERS, DIM, NUM_FILTERS = 12, 5, 11
SENTENCES = [["the", "cat", "sat", "on", "the", "mat"], ["the", "extraordinary", "cat"], []]


def encoder_of(seed: int = 13, **settings: Any) -> CharCnnEncoder:
    torch.manual_seed(seed)
    standard: Dict[str, Any] = {
        "dim": DIM,
        "character_dim": 3,
        "filters": [(1, 2), (2, 3), (5, 6)],
        "max_characters_per_token": CHARACTERS,
    }
    encoder = CharCnnEncoder(**{**standard, **settings})
    for name, parameter in encoder.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return encoder


def batch_of(sentences: List[List[str]], characters: int = CHARACTERS) -> torch.Tensor:
    tokens = max(map(len, sentences))
    ids = torch.zeros(len(sentences), tokens, characters).long()
    for row, sentence in enumerate(sentences):
        for token, word in enumerate(sentence):
            ids[row, token] = torch.tensor(character_ids(word, characters))
    return ids


def encode(encoder: CharCnnEncoder, sentences: List[List[str]]) -> torch.Tensor:
    ids = batch_of(sentences, encoder.max_characters_per_token)
    return encoder(ids, (ids > 0).any(dim=-1)).vectors


def encode_one_by_one(encoder: CharCnnEncoder, sentences: List[List[str]]) -> torch.Tensor:
    """Every word for itself, through the layers, none of them twice the same."""
    vectors = torch.zeros(len(sentences), max(map(len, sentences)) + 2, encoder.dim)
    for row, sentence in enumerate(sentences):
        for position, word in enumerate(["<S>", *sentence, "</S>"]):
            ids = character_ids(word, encoder.max_characters_per_token)
            vector = encoder.convolution(torch.tensor([ids]))
            for highway in encoder.highways:
                vector = highway(vector)
            vectors[row, position] = encoder.projection(vector)[0]
    return vectors


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"activation": "tanh", "num_highway": 0},
        {"num_highway": 1, "cached_words": 0},
        {"dim": NUM_FILTERS, "cached_words": 3},
        {"max_characters_per_token": 50, "filters": [(7, 11)]},
    ],
)
def test_each_word_and_each_mark_has_its_own_vector(
    settings: Dict[str, Any], is_frozen: bool
) -> None:
    encoder = encoder_of(**settings).requires_grad_(not is_frozen)
    expected = encode_one_by_one(encoder, SENTENCES)
    for _ in range(2):
        assert torch.allclose(encode(encoder, SENTENCES), expected, atol=1e-6)


def test_boundaries_stand_around_each_sentence() -> None:
    ids = batch_of(SENTENCES)
    encoded = encoder_of()(ids, (ids > 0).any(dim=-1))
    assert encoded.mask.tolist() == [
        [True] * 8,
        [True] * 5 + [False] * 3,
        [True] * 2 + [False] * 6,
    ]
    begin, end = encoder_of().encode_marks()
    assert torch.allclose(encoded.vectors[:, 0], begin.expand(3, -1), atol=1e-6)
    ends = encoded.vectors[[0, 1, 2], [7, 4, 1]]
    assert torch.allclose(ends, end.expand(3, -1), atol=1e-6)
    assert not torch.allclose(begin, end, atol=0.01)
    assert not encoded.vectors[~encoded.mask].any()


def test_what_lies_under_the_padding_changes_no_bit() -> None:
    encoder, ids = encoder_of(), batch_of(SENTENCES)
    mask = (ids > 0).any(dim=-1)
    littered = ids.masked_fill(~mask.unsqueeze(-1), 99)
    assert torch.equal(encoder(littered, mask).vectors, encoder(ids, mask).vectors)


@pytest.mark.parametrize("dtype", EACH_INDEPENDENT_PRECISION)
def test_a_frozen_vector_depends_on_the_word_alone_to_the_bit(dtype: str) -> None:
    # PyTorch takes the sigmoid of 32 numbers at once, and of those left over in another way.
    encoder = encoder_of(filters=[(1, 13), (3, 19)], cached_words=0).requires_grad_(False)
    MixedPrecision.set_everywhere(encoder, dtype)
    among = encode(encoder, SENTENCES)
    for row, sentence in enumerate(SENTENCES):
        for position, word in enumerate(sentence, start=1):
            alone = encode(encoder, [[word]])
            assert torch.equal(alone[0, 1], among[row, position]), word


def test_more_words_than_go_through_a_layer_at_once_are_encoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = "elmo_scratch.modules.token_encoders.spelled_word_encoder"
    monkeypatch.setattr(f"{module}.WORDS_AT_ONCE", 4)
    monkeypatch.setattr(char_cnn_encoder, "words_at_once", lambda _: 3)
    words = [[letter * (number % 11) for number, letter in enumerate("abcdefghijklmnopqrstu")]]
    encoder = encoder_of()
    assert torch.allclose(encode(encoder, words), encode_one_by_one(encoder, words), atol=1e-6)


def test_frozen_vectors_are_kept_from_batch_to_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    # No words beside those of the batch.
    monkeypatch.setattr(spelled_word_encoder, "WORDS_TOGETHER", 1)
    encoder, num_encoded = encoder_of().requires_grad_(False), []
    encoder.convolution.register_forward_hook(lambda _, ids, __: num_encoded.append(len(ids[0])))
    before = encode(encoder, SENTENCES)
    assert torch.equal(encode(encoder, SENTENCES), before)
    assert torch.equal(encode(encoder, [["cat", "dog", "the"]])[0, [1, 3]], before[0, [2, 1]])
    assert num_encoded == [8, 1]  # six words and two marks, then a dog
    encoder.forget_words()
    assert torch.equal(encode(encoder, SENTENCES), before)
    assert num_encoded == [8, 1, 8]


@pytest.mark.parametrize("part", ["convolution.convolutions.1", "highways.0.carry", "projection"])
def test_after_forgetting_a_change_that_was_not_seen_has_its_effect(part: str) -> None:
    settings: Dict[str, Any] = {"filters": [(1, 13), (5, 19)]}
    encoder, other = (encoder_of(**settings).requires_grad_(False) for _ in range(2))
    before = encode(encoder, SENTENCES)
    for one in (encoder, other):
        # One number, and none of those that a fingerprint looks at.
        one.get_submodule(part).weight.data.view(-1)[1] += 9.0
    assert torch.equal(encode(encoder, SENTENCES), before)
    encoder.forget_words()
    after = encode(encoder, SENTENCES)
    assert not torch.allclose(after, before, atol=0.01)
    assert torch.allclose(after, encode(other, SENTENCES), atol=1e-6)


@needs_independent_rows
def test_words_that_are_kept_are_encoded_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = encoder_of(cached_words=1).requires_grad_(False)
    expected = encode(encoder, SENTENCES)
    words = batch_of([["mat", "the", "cat", "sat", "the", "on", "extraordinary"]])[0]
    encoder.keep_words(words)
    encode(encoder, [["something", "else"]])
    marks = []
    encode_distinct = encoder.encode_distinct

    def watched(ids: torch.Tensor) -> torch.Tensor:
        marks.append(len(ids))
        return encode_distinct(ids)

    monkeypatch.setattr(encoder, "encode_distinct", watched)
    assert torch.equal(encode(encoder, SENTENCES), expected)
    assert marks == [2]


def test_vectors_of_a_training_are_not_kept_in_evaluation() -> None:
    encoder = encoder_of()
    with torch.no_grad():
        before = encode(encoder, SENTENCES)
        encoder.projection.bias.add_(1.0)
        assert torch.allclose(encode(encoder, SENTENCES)[0], before[0] + 1.0, atol=1e-5)


@each_change
def test_a_change_of_frozen_weights_is_seen(change: Change) -> None:
    encoder, other = encoder_of().requires_grad_(False), encoder_of(7).requires_grad_(False)
    before = encode(encoder, SENTENCES)
    change(encoder, other)
    assert torch.allclose(encode(encoder, SENTENCES), encode(other, SENTENCES), atol=1e-6)
    assert not torch.allclose(encode(encoder, SENTENCES), before, atol=0.01)


def test_another_type_of_numbers_is_seen() -> None:
    encoder = encoder_of().requires_grad_(False)
    before = encode(encoder, SENTENCES)
    doubled = encode(encoder.double(), SENTENCES)
    assert doubled.dtype == torch.float64
    assert torch.allclose(doubled.float(), before, atol=1e-5)
    assert encode(encoder, [[]]).dtype == torch.float64


def test_copies_and_pickles_are_independent() -> None:
    encoder = encoder_of().requires_grad_(False)
    before = encode(encoder, SENTENCES)
    for twin in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert torch.equal(encode(twin, SENTENCES), before)
        twin.projection.bias.add_(1.0)
        assert torch.allclose(encode(twin, SENTENCES)[0], before[0] + 1.0, atol=1e-5)
    assert torch.equal(encode(encoder, SENTENCES), before)


def test_what_inference_mode_has_left_behind_serves_a_training_on_top() -> None:
    encoder = encoder_of().requires_grad_(False)
    with torch.inference_mode():
        encode(encoder, SENTENCES[:2])
    scale = torch.ones((), requires_grad=True)
    for sentences in ([["the", "cat"]], [["the", "dog"]], [["new", "words"]]):
        (encode(encoder, sentences) * scale).sum().backward()
    assert scale.grad is not None


def test_gradients_are_those_of_every_word_for_itself() -> None:
    encoder = encoder_of()
    names, parameters = zip(*encoder.named_parameters(), strict=True)
    weights = torch.randn(3, 8, DIM)
    ours, expected = (
        torch.autograd.grad((weights * vectors).sum(), parameters)
        for vectors in (encode(encoder, SENTENCES), encode_one_by_one(encoder, SENTENCES))
    )
    for name, one, other in zip(names, ours, expected, strict=True):
        assert one.any(), name
        assert torch.allclose(one, other, atol=1e-5), name


@pytest.mark.parametrize("dtype, within", [("bfloat16", 0.01), ("float32", 1e-5)])
@pytest.mark.parametrize("num_words", [1, 63, 64, 300])
def test_words_that_fill_a_product_up_do_not_show(
    num_words: int, dtype: str, within: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = encoder_of()
    MixedPrecision.set_everywhere(encoder, dtype)
    ids = batch_of([[f"{number}w" * (1 + number % 3) for number in range(num_words)]])[0]
    found = []
    for together in (1, 48, 64):
        monkeypatch.setattr(char_cnn_encoder, "WORDS_TOGETHER", together)
        monkeypatch.setattr(spelled_word_encoder, "WORDS_TOGETHER", together)
        vectors = encoder.encode_distinct(ids)
        assert vectors.shape == (num_words, DIM)
        gradients = torch.autograd.grad(vectors.square().sum(), list(encoder.parameters()))
        found.append([vectors, *gradients])
    for others in found[1:]:
        for ours, exact in zip(others, found[0], strict=True):
            assert (ours - exact).norm() <= within * exact.norm()


def test_one_weight_that_is_trained_is_trained_as_among_others() -> None:
    encoder = encoder_of()
    asking = dict(encoder.named_parameters())
    for name, parameter in asking.items():
        (expected,) = torch.autograd.grad(encode(encoder, SENTENCES).square().sum(), [parameter])
        encoder.requires_grad_(False)
        parameter.requires_grad_()
        (alone,) = torch.autograd.grad(encode(encoder, SENTENCES).square().sum(), [parameter])
        assert torch.allclose(alone, expected, atol=1e-5), name
        encoder.requires_grad_()


@pytest.mark.parametrize("dim, is_projected", [(DIM, True), (NUM_FILTERS, False)])
def test_there_is_a_projection_where_sizes_differ(dim: int, is_projected: bool) -> None:
    encoder = encoder_of(dim=dim)
    assert encode(encoder, SENTENCES).size(-1) == dim
    assert ("projection.weight" in encoder.state_dict()) == is_projected


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"activation": "gelu"}, "`activation` among relu, tanh, but got 'gelu'"),
        ({"dim": 0}, "expected `dim` of 1 or more, but got 0"),
        ({"character_dim": 0}, "expected `character_dim` of 1 or more, but got 0"),
        ({"num_highway": -1}, "`num_highway` of 0 or more, but got -1"),
        ({"cached_words": -2}, "`cached_words` of 0 or more, but got -2"),
        ({"filters": []}, "at least one pair of a width and a number in `filters`"),
        ({"filters": [(13, 2)]}, r"widths from 1 to 12 .* but got \[13, 2\]"),
        ({"filters": [(1, 2), (0, 3)]}, r"widths from 1 to 12 .* but got \[0, 3\]"),
        ({"filters": [(1, 0)]}, r"at least one filter of each, but got \[1, 0\]"),
        ({"max_characters_per_token": 2}, "`max_characters_per_token` from 3 to 4096, but got 2"),
        ({"max_characters_per_token": 10**18}, f"from 3 to 4096, but got {10**18}"),
    ],
)
def test_settings_that_make_no_sense_are_errors(settings: Dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encoder_of(**settings)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 50), (2, 3, 4, CHARACTERS)])
def test_ids_of_another_shape_are_an_error(shape: tuple) -> None:
    with pytest.raises(ValueError, match=r"\(batch, tokens, 12\), but got the shape \(2, 3"):
        encoder_of()(torch.zeros(shape).long(), torch.ones(2, 3).bool())


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("sentences", [SENTENCES, [["<S>", "the", "</S>"], ["<S>"]], [[], []]])
def test_words_that_are_laid_have_the_vectors_of_a_batch(
    sentences: List[List[str]], is_frozen: bool
) -> None:
    encoder = encoder_of().requires_grad_(not is_frozen)
    ids = batch_of(sentences)
    mask = (ids > 0).any(dim=-1)
    # One that doesn't come, and one that comes twice.
    words = ["nothing", *{word for sentence in sentences for word in sentence}, "nothing"]
    places = torch.zeros(mask.shape).long()
    for row, sentence in enumerate(sentences):
        places[row, : len(sentence)] = torch.tensor([words.index(word) for word in sentence])
    for _ in range(2):
        laid = encoder.encode_laid(batch_of([words])[0], places, mask)
        expected = encoder(ids, mask)
        assert torch.allclose(laid.vectors, expected.vectors, atol=1e-6)
        assert torch.equal(laid.mask, expected.mask)


@pytest.mark.parametrize("shape", [(2, 3, CHARACTERS), (2, 50), (CHARACTERS,)])
def test_words_to_lay_of_another_shape_are_an_error(shape: tuple) -> None:
    places, mask = torch.zeros(2, 3).long(), torch.ones(2, 3).bool()
    with pytest.raises(ValueError, match=r"in the shape \(words, 12\), but got the shape \("):
        encoder_of().encode_laid(torch.zeros(shape).long(), places, mask)


@pytest.mark.parametrize("bad", [-1, NUM_BATCH_IDS])
def test_ids_that_are_no_characters_are_an_error(bad: int) -> None:
    ids = batch_of(SENTENCES)
    ids[1, 2, 3] = bad
    with pytest.raises(ValueError, match=f"ids of characters from 0 to 261, but got.* {bad}"):
        encoder_of()(ids, (ids > 0).any(dim=-1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.int8, torch.bool])
def test_ids_of_another_type_are_an_error(dtype: torch.dtype) -> None:
    ids = batch_of(SENTENCES)
    with pytest.raises(ValueError, match=f"ids of characters of the type .* but got {dtype}"):
        encoder_of()(ids.to(dtype), (ids > 0).any(dim=-1))


def test_it_is_built_from_a_config() -> None:
    config = {"type": "char_cnn", "dim": DIM, "filters": [[1, 2], [3, 4]], "activation": "tanh"}
    encoder = TokenEncoder.from_params(Params(config))
    assert isinstance(encoder, CharCnnEncoder)
    assert encoder.convolution.filters == ((1, 2), (3, 4))
    assert (encoder.max_characters_per_token, len(encoder.highways)) == (50, 2)


def test_names_of_its_tensors_are_a_file_format() -> None:
    affines = [f"convolution.convolutions.{number}" for number in range(3)] + ["projection"]
    affines += [f"highways.{number}.{part}" for number in (0, 1) for part in ("carry", "transform")]
    assert set(encoder_of().state_dict()) == {"convolution.embedding.weight"} | {
        f"{affine}.{tensor}" for affine in affines for tensor in ("weight", "bias")
    }
