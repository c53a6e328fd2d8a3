import math
from typing import List, NamedTuple, Tuple

import pytest
import torch

from elmo_scratch.kernels import char_convolution
from elmo_scratch.kernels.char_convolution import can_convolve, convolved_maxima
from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules.token_encoders.char_cnn_encoder import CharacterConvolution, lengths
from tests.kernels.compiled_dtypes import each_dtype_of, needs_bfloat16
from tests.modules.token_encoders.character_convolution_test import (
    malformed_words,
    words_of_every_length,
)

pytestmark = pytest.mark.skipif(
    not char_convolution.CONVOLVE, reason="there is no compiled convolution for this processor"
)

DIM = 16
FILTERS = [(1, 32), (2, 20), (3, 100), (7, 64)]

each_dtype = each_dtype_of(char_convolution.CONVOLVE)
each_size = pytest.mark.parametrize(
    "dim, characters, filters",
    [
        (16, 50, FILTERS),
        (32, 50, [(5, 65), (1, 3)]),
        (16, 50, [(50, 3), (9, 17)]),
        (16, 12, [(12, 3)]),
        (48, 3, [(1, 2), (3, 70)]),
    ],
)


WITHOUT_TILES = pytest.param(
    "without tiles",
    marks=pytest.mark.skipif(not char_convolution.HAS_TILES, reason="this processor has no tiles"),
)


@pytest.fixture(params=["as it is", WITHOUT_TILES])
def each_processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """This one, and one without tiles."""
    if request.param == "without tiles":
        monkeypatch.setattr(char_convolution, "HAS_TILES", False)


class Convolved(NamedTuple):
    """What goes into a convolution."""

    characters: torch.Tensor
    lengths: torch.Tensor
    most_characters: int
    dtype: torch.dtype
    weights: List[torch.Tensor]
    biases: List[torch.Tensor]

    def gradients(self, maxima: torch.Tensor) -> List[torch.Tensor]:
        """The gradients of all parameters, of a sum with random weights."""
        torch.manual_seed(14)
        graph = [self.characters, *self.weights, *self.biases]
        weights = torch.randn(maxima.shape).to(maxima.dtype)
        return list(torch.autograd.grad((maxima * weights).sum(), graph))


def random_convolved(
    ids: torch.Tensor, filters: List[Tuple[int, int]], dtype: torch.dtype, dim: int = DIM
) -> Convolved:
    torch.manual_seed(13)
    needed = min(ids.size(1), int(lengths(ids).max()) + max(width for width, _ in filters))
    vectors = torch.randn(300, dim)
    return Convolved(
        vectors[ids[:, :needed]].requires_grad_(),
        lengths(ids),
        ids.size(1),
        dtype,
        [torch.randn(number, width * dim).requires_grad_() for width, number in filters],
        [torch.randn(number).requires_grad_() for _, number in filters],
    )


def compiled(given: Convolved) -> torch.Tensor:
    maxima = convolved_maxima(*given)
    assert maxima is not None
    return maxima


def exactly(given: Convolved) -> torch.Tensor:
    """PyTorch's operations in float64 on what is rounded for products."""
    characters = given.characters.to(given.dtype).double()
    dim, maxima = characters.size(2), []
    for weight, bias in zip(given.weights, given.biases, strict=True):
        width = weight.size(1) // dim
        rounded = weight.to(given.dtype).double()
        windows = characters.unfold(1, width, 1).transpose(2, 3).flatten(2)
        responses = windows @ rounded.t() + bias.double()
        # A word's maxima are those of its own windows, and of one behind it.
        places = torch.arange(responses.size(1))
        own = (places <= given.lengths.unsqueeze(1)).unsqueeze(2)
        maxima.append(responses.masked_fill(~own, -math.inf).max(dim=1).values)
    return torch.cat(maxima, dim=1)


@pytest.mark.usefixtures("each_number_of_threads", "each_processor")
@each_dtype
@each_size
@pytest.mark.parametrize("words_of", [words_of_every_length, malformed_words])
def test_maxima_and_gradients_are_the_exact_ones(
    words_of: type, dim: int, characters: int, filters: List[Tuple[int, int]], dtype: torch.dtype
) -> None:
    given = random_convolved(words_of(characters), filters, dtype, dim)
    maxima, expected = compiled(given), exactly(given)
    assert maxima.dtype == torch.float32
    assert torch.allclose(maxima.double(), expected, rtol=1e-5, atol=1e-4)
    # What is rounded on the way there is what gradients go through here too, but unrounded.
    exact = given._replace(dtype=torch.float32)
    wanted = exact.gradients(exactly(exact)) if dtype == torch.float32 else None
    for number, gradient in enumerate(given.gradients(maxima)):
        assert gradient.dtype == torch.float32 and gradient.any()
        if wanted is not None:
            assert torch.allclose(gradient.double(), wanted[number].double(), rtol=1e-5, atol=1e-4)


@needs_bfloat16(char_convolution.CONVOLVE)
@pytest.mark.usefixtures("each_processor")
def test_rounded_gradients_point_where_the_exact_ones_do() -> None:
    given = random_convolved(words_of_every_length(50), FILTERS, torch.bfloat16)
    exact = given._replace(dtype=torch.float32)
    ours = given.gradients(compiled(given))
    for one, other in zip(ours, exact.gradients(compiled(exact)), strict=True):
        assert torch.cosine_similarity(one.flatten(), other.flatten(), dim=0) >= 0.99


@pytest.mark.usefixtures("each_number_of_threads", "each_processor")
@each_dtype
def test_no_word_depends_on_others_to_the_bit(dtype: torch.dtype) -> None:
    given = random_convolved(words_of_every_length(50), FILTERS, dtype)
    among = compiled(given)
    for number in range(len(among)):
        one = slice(number, number + 1)
        alone = given._replace(characters=given.characters[one], lengths=given.lengths[one])
        assert torch.equal(compiled(alone)[0], among[number])


@each_dtype
def test_what_is_no_number_stays_with_its_word(dtype: torch.dtype) -> None:
    given = random_convolved(words_of_every_length(50), FILTERS, dtype)
    characters = given.characters.detach().clone()
    characters[7, 0] = math.nan
    lost = compiled(given._replace(characters=characters)).isnan()
    assert lost.any(dim=1).nonzero().tolist() == [[7]] and lost[7].all()


def test_of_equal_responses_the_first_gets_the_gradient() -> None:
    characters = torch.zeros(1, 5, DIM)
    characters[0, 1, 0] = characters[0, 3, 0] = 2.0
    weight = torch.zeros(1, DIM)
    weight[0, 0] = 3.0
    given = Convolved(
        characters.requires_grad_(),
        torch.tensor([4]),
        5,
        torch.float32,
        [weight.requires_grad_()],
        [torch.ones(1, requires_grad=True)],
    )
    maxima = compiled(given)
    assert maxima.tolist() == [[7.0]]
    maxima.sum().backward()
    assert characters.grad is not None
    assert characters.grad.nonzero().tolist() == [[0, 1, 0]]
    assert characters.grad[0, 1, 0] == 3.0


@each_dtype
def test_it_knows_what_it_can_convolve(dtype: torch.dtype) -> None:
    def is_known(given: Convolved) -> bool:
        return can_convolve(*given)

    given = random_convolved(words_of_every_length(50), FILTERS, dtype)
    assert is_known(given)
    unfit = [
        random_convolved(words_of_every_length(50), FILTERS, dtype, dim=24),
        given._replace(dtype=torch.float64),
        given._replace(most_characters=6),
        given._replace(most_characters=256),
        given._replace(weights=[weight[:, :-1] for weight in given.weights]),
        given._replace(biases=[bias[1:] for bias in given.biases]),
        given._replace(biases=[bias.double() for bias in given.biases]),
        given._replace(weights=[weight.to("meta") for weight in given.weights]),
        given._replace(characters=given.characters.bfloat16()),
        given._replace(characters=given.characters[:0], lengths=given.lengths[:0]),
    ]
    assert not any(is_known(one) for one in unfit)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not is_known(given)


@each_dtype
def test_what_others_kept_in_their_own_way_is_read_too(dtype: torch.dtype) -> None:
    given = random_convolved(words_of_every_length(50), FILTERS, dtype)
    expected = given.gradients(compiled(given))

    def turned(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.double().transpose(0, -1).contiguous().transpose(0, -1)

    with torch.autograd.graph.saved_tensors_hooks(turned, lambda tensor: tensor):
        maxima = compiled(given)
    for ours, wanted in zip(given.gradients(maxima), expected, strict=True):
        assert torch.equal(ours, wanted)


def test_where_something_stands_between_weights_and_products_they_go_the_other_way() -> None:
    ids, convolution = words_of_every_length(50), CharacterConvolution(DIM, FILTERS, "tanh")
    affine, called = convolution.convolutions[1], []

    def is_compiled() -> bool:
        return "ConvolvedMaxima" in repr(convolution(ids).grad_fn.next_functions)

    assert is_compiled()
    hook = affine.register_forward_hook(lambda *_: called.append(1))
    assert not is_compiled() and called
    hook.remove()
    assert is_compiled()
    torch.nn.utils.parametrize.register_parametrization(affine, "weight", torch.nn.Identity())
    assert not is_compiled()


def test_weights_may_be_plain_tensors() -> None:
    ids, convolution = words_of_every_length(50), CharacterConvolution(DIM, FILTERS, "tanh")
    others = {name: part.detach().clone() for name, part in convolution.named_parameters()}
    vectors = torch.func.functional_call(convolution, others, (ids,))
    assert torch.allclose(vectors, convolution(ids), atol=1e-5)


@each_dtype
def test_a_convolution_that_is_trained_goes_this_way(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = words_of_every_length(50)
    convolution, found = CharacterConvolution(DIM, FILTERS, "tanh"), []
    for is_known in (True, False):
        if not is_known:
            name = "elmo_scratch.kernels.char_convolution.can_convolve"
            monkeypatch.setattr(name, lambda *_: False)
        vectors = convolution(ids)
        assert ("ConvolvedMaxima" in repr(vectors.grad_fn.next_functions)) == is_known
        parameters = list(convolution.parameters())
        found.append([vectors, *torch.autograd.grad(vectors.square().sum(), parameters)])
    for ours, plain in zip(*found, strict=True):
        assert torch.allclose(ours, plain, rtol=1e-4, atol=1e-4)
    assert not torch.no_grad()(convolution)(ids).requires_grad


@each_dtype
def test_a_frozen_convolution_goes_this_way_too(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, convolution = words_of_every_length(50), CharacterConvolution(DIM, FILTERS, "tanh")
    MixedPrecision.set_everywhere(convolution, str(dtype).partition(".")[2])
    trained = convolution(ids)
    convolution.requires_grad_(False)
    asked: List[int] = []
    monkeypatch.setattr(convolution, "_plain_maxima", lambda *_: asked.append(1))
    assert torch.equal(convolution(ids), trained) and not asked


@each_dtype
def test_a_frozen_convolution_is_packed_once(dtype: torch.dtype) -> None:
    ids, convolution = words_of_every_length(50), CharacterConvolution(DIM, FILTERS, "tanh")
    MixedPrecision.set_everywhere(convolution, str(dtype).partition(".")[2])
    convolution(ids)
    assert convolution._packed._kept is None
    first = convolution.requires_grad_(False)(ids)
    packed = convolution._packed._kept
    assert packed is not None
    assert torch.equal(convolution(ids), first) and convolution._packed._kept is packed
    convolution.convolutions[0].weight.mul_(1.5)
    assert not torch.equal(convolution(ids), first)
    convolution.to("meta")
    assert convolution._packed._kept is None
