from typing import Callable, Dict, List, Tuple

import pytest
import torch

from elmo_scratch.alphabet import NUM_BATCH_IDS, PADDING_ID, character_ids
from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules.token_encoders.char_cnn_encoder import CharacterConvolution, lengths

Filters = List[Tuple[int, int]]
WordsOf = Callable[[int], torch.Tensor]

CHARACTER_DIM = 5
FILTERS = [(1, 3), (2, 7), (3, 11)]

each_activation = pytest.mark.parametrize("activation", ["relu", "tanh"])
each_size = pytest.mark.parametrize(
    "characters, filters",
    [(50, FILTERS), (50, [(7, 13), (1, 2)]), (50, [(50, 3)]), (12, FILTERS), (12, [(12, 3)])]
    + [(3, FILTERS), (3, [(1, 2)])],
)


def random_convolution(
    filters: Filters = FILTERS, activation: str = "tanh"
) -> CharacterConvolution:
    """In float64, with biases on both sides of zero."""
    torch.manual_seed(13)
    convolution = CharacterConvolution(CHARACTER_DIM, filters, activation).double()
    for name, parameter in convolution.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return convolution


def words_of_every_length(characters: int) -> torch.Tensor:
    """Of 0 to 48 bytes, as far as there is room, and the sentence marks."""
    words = ["abcdefgh"[length % 7 :] * 7 for length in range(characters - 1)]
    spelled = [word[:length] for length, word in enumerate(words)] + ["<S>", "</S>"]
    return torch.tensor([character_ids(word, characters) for word in spelled])


def malformed_words(characters: int) -> torch.Tensor:
    """Any ids at any place: zeros between characters, padding between characters, no mark."""
    torch.manual_seed(13)
    ids = torch.randint(0, NUM_BATCH_IDS, (17, characters))
    ids[:3] = 0
    ids[1, -1] = 7
    ids[2, 1:] = PADDING_ID
    ids[3] = PADDING_ID
    ids[4, : characters // 2] = PADDING_ID
    ids[5, characters // 2 :] = 0
    return ids


def convolve_everything(convolution: CharacterConvolution, ids: torch.Tensor) -> torch.Tensor:
    """PyTorch's convolution over all characters, padding included."""
    vectors = convolution.embedding(ids).transpose(1, 2)  # (words, character_dim, characters)
    maxima = []
    for (width, number), affine in zip(convolution.filters, convolution.convolutions, strict=True):
        kernel = affine.get_parameter("weight").view(number, width, -1).transpose(1, 2)
        responses = torch.nn.functional.conv1d(vectors, kernel, affine.get_parameter("bias"))
        maxima.append(responses.max(dim=2).values)
    activation = torch.relu if convolution.activation == "relu" else torch.tanh
    return activation(torch.cat(maxima, dim=1))


@each_size
@each_activation
@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("words_of", [words_of_every_length, malformed_words])
def test_it_equals_a_convolution_over_all_characters(
    characters: int, filters: Filters, activation: str, is_frozen: bool, words_of: WordsOf
) -> None:
    convolution = random_convolution(filters, activation).requires_grad_(not is_frozen)
    ids = words_of(characters)
    expected = convolve_everything(convolution, ids)
    assert expected.shape == (len(ids), sum(number for _, number in filters))
    assert torch.allclose(convolution(ids), expected, rtol=0, atol=1e-12)


@each_size
@pytest.mark.parametrize("words_of", [words_of_every_length, malformed_words])
def test_a_word_alone_equals_itself_among_others(
    characters: int, filters: Filters, words_of: WordsOf
) -> None:
    convolution, ids = random_convolution(filters), words_of(characters)
    alone = torch.cat([convolution(word.unsqueeze(0)) for word in ids])
    assert torch.allclose(convolution(ids), alone, rtol=0, atol=1e-12)


@each_size
@each_activation
@pytest.mark.parametrize("words_of", [words_of_every_length, malformed_words])
def test_gradients_are_those_of_a_convolution_over_all_characters(
    characters: int, filters: Filters, activation: str, words_of: WordsOf
) -> None:
    convolution, ids = random_convolution(filters, activation), words_of(characters)
    weights = torch.randn(len(ids), convolution.output_dim).double()
    names, parameters = zip(*convolution.named_parameters(), strict=True)
    ours, expected = (
        torch.autograd.grad((weights * vectors).sum(), parameters)
        for vectors in (convolution(ids), convolve_everything(convolution, ids))
    )
    for name, one, other in zip(names, ours, expected, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-10), name
    assert not ours[names.index("embedding.weight")][0].any()


def test_a_word_can_be_followed_on_paper() -> None:
    convolution = CharacterConvolution(1, [(2, 1)], "relu").requires_grad_(False)
    convolution.embedding.weight[:, 0] = torch.arange(float(NUM_BATCH_IDS))
    convolution.convolutions[0].weight.copy_(torch.tensor([[10.0, -1.0]]))
    convolution.convolutions[0].bias.fill_(0.5)
    ids = torch.tensor([[3, 5, 2, 4]])  # 10 * 3 - 5, 10 * 5 - 2, 10 * 2 - 4
    assert convolution(ids).tolist() == [[48.5]]


@pytest.mark.parametrize("is_frozen", [False, True])
def test_no_word_gives_no_vector(is_frozen: bool) -> None:
    convolution = random_convolution().requires_grad_(not is_frozen)
    assert convolution(torch.zeros(0, 12).long()).shape == (0, convolution.output_dim)


@pytest.mark.parametrize("num_words, num_groups", [(1, 1), (4, 1), (5, 2), (8, 2)])
def test_no_group_without_words_is_convolved(
    num_words: int, num_groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "elmo_scratch.modules.token_encoders.char_cnn_encoder.words_at_once", lambda _: 4
    )
    convolution, sizes = random_convolution().requires_grad_(False), []
    convolution.embedding.register_forward_hook(lambda _, ids, __: sizes.append(len(ids[0])))
    convolution(words_of_every_length(12)[:num_words])
    assert len(sizes) == num_groups and sum(sizes) == num_words


def test_lengths_count_all_before_the_padding() -> None:
    ids = [[5, 6, 7], [5, 6, PADDING_ID], [PADDING_ID] * 3, [0, PADDING_ID, 0]]
    assert lengths(torch.tensor([*ids, [5, PADDING_ID, PADDING_ID]])).tolist() == [3, 2, 0, 3, 1]


def test_in_bfloat16_vectors_and_gradients_are_close_to_those_in_float32() -> None:
    convolution, ids = random_convolution().float(), words_of_every_length(50)
    found = []
    for dtype in ("float32", "bfloat16"):
        MixedPrecision.set_everywhere(convolution, dtype)
        vectors = convolution(ids)
        assert vectors.dtype == torch.float32
        weights = list(convolution.convolutions.parameters())
        found.append([vectors, *torch.autograd.grad(vectors.sum(), weights, retain_graph=True)])
    for exact, rounded in zip(*found, strict=True):
        assert not torch.equal(exact, rounded)
        cosine = torch.cosine_similarity(exact.flatten(), rounded.flatten(), dim=0)
        assert cosine >= 0.999


def test_names_and_shapes_of_its_tensors_are_a_file_format() -> None:
    state = random_convolution().state_dict()
    shapes: Dict[str, Tuple[int, ...]] = {"embedding.weight": (NUM_BATCH_IDS, CHARACTER_DIM)}
    for place, (width, number) in enumerate(FILTERS):
        shapes[f"convolutions.{place}.weight"] = (number, width * CHARACTER_DIM)
        shapes[f"convolutions.{place}.bias"] = (number,)
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == shapes
