import copy
import pickle

import pytest
import torch

from elmo_scratch.kernels.linear import Linear
from elmo_scratch.kernels.precision import MixedPrecision
from tests.kernels.frozen_weights import (
    EACH_INDEPENDENT_PRECISION,
    Change,
    each_change,
    needs_independent_rows,
)

ROWS, INPUT_DIM, OUTPUT_DIM = 3, 5, 7


def random_affine(seed: int = 13) -> Linear:
    torch.manual_seed(seed)
    affine = Linear(INPUT_DIM, OUTPUT_DIM)
    torch.nn.init.normal_(affine.bias)
    return affine


def linear_like(affine: Linear) -> torch.nn.Linear:
    linear = torch.nn.Linear(INPUT_DIM, OUTPUT_DIM)
    linear.load_state_dict(affine.state_dict())
    return linear


@pytest.mark.parametrize("is_frozen", [False, True])
def test_it_can_be_followed_on_paper(is_frozen: bool) -> None:
    affine = Linear(3, 2).requires_grad_(not is_frozen)
    weight, bias = torch.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 4.0]]), torch.tensor([0.5, 7.0])
    affine.load_state_dict({"weight": weight, "bias": bias})
    assert affine(torch.tensor([[1.0, 1.0, 1.0], [2.0, 0.0, -1.0]])).tolist() == [
        [6.5, 10.0],
        [-0.5, 3.0],
    ]


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [0, 1, ROWS])
def test_it_equals_torchs_linear_layer(is_frozen: bool, dtype: torch.dtype, rows: int) -> None:
    affine = random_affine().to(dtype).requires_grad_(not is_frozen)
    vectors = torch.randn(rows, INPUT_DIM, dtype=dtype)
    done = affine(vectors)
    assert done.dtype == dtype
    assert torch.allclose(done, linear_like(affine).to(dtype)(vectors), atol=1e-6)


def test_a_fresh_bias_is_zero() -> None:
    assert not Linear(INPUT_DIM, OUTPUT_DIM).bias.any()


def test_gradients_are_those_of_torchs_linear_layer() -> None:
    affine = random_affine()
    linear = linear_like(affine)
    vectors = torch.randn(ROWS, INPUT_DIM, requires_grad=True)
    ours = torch.autograd.grad(affine(vectors).square().sum(), [vectors, *affine.parameters()])
    theirs = torch.autograd.grad(linear(vectors).square().sum(), [vectors, *linear.parameters()])
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("name", ["vectors", "weight", "bias"])
def test_what_asks_for_a_gradient_alone_gets_it(name: str) -> None:
    affine = random_affine().requires_grad_(False)
    asking = {"vectors": torch.randn(ROWS, INPUT_DIM), **dict(affine.named_parameters())}
    asking[name].requires_grad_()
    (gradient,) = torch.autograd.grad(affine(asking["vectors"]).sum(), [asking[name]])
    expected = {
        "vectors": affine.weight.sum(dim=0).expand(ROWS, -1),
        "weight": asking["vectors"].sum(dim=0).expand(OUTPUT_DIM, -1),
        "bias": torch.full((OUTPUT_DIM,), float(ROWS)),
    }
    assert torch.allclose(gradient, expected[name], atol=1e-5)


@each_change
def test_a_change_of_frozen_weights_is_seen(change: Change) -> None:
    affine, other = random_affine().requires_grad_(False), random_affine(7).requires_grad_(False)
    vectors = torch.randn(ROWS, INPUT_DIM)
    before = affine(vectors)
    change(affine, other)
    assert torch.allclose(affine(vectors), other(vectors))
    assert not torch.allclose(affine(vectors), before, atol=0.01)


def test_another_type_of_numbers_is_seen() -> None:
    affine = random_affine().requires_grad_(False)
    vectors = torch.randn(ROWS, INPUT_DIM)
    before = affine(vectors)
    doubled = affine.double()(vectors.double())
    assert doubled.dtype == torch.float64
    assert torch.allclose(doubled.float(), before, atol=1e-6)
    assert torch.equal(affine.float()(vectors), before)


def test_another_precision_is_seen() -> None:
    affine = random_affine().requires_grad_(False)
    vectors = torch.randn(ROWS, INPUT_DIM)
    exact = affine(vectors)
    MixedPrecision.set_everywhere(affine, "bfloat16")
    rounded = affine(vectors)
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    assert torch.allclose(rounded, exact, rtol=0.02, atol=0.02)


def test_in_bfloat16_gradients_are_close_to_those_in_float32() -> None:
    affine, vectors = random_affine(), torch.randn(ROWS, INPUT_DIM, requires_grad=True)
    asking = [vectors, *affine.parameters()]
    exact = torch.autograd.grad(affine(vectors).square().sum(), asking)
    MixedPrecision.set_everywhere(affine, "bfloat16")
    rounded = torch.autograd.grad(affine(vectors).square().sum(), asking)
    for one, other in zip(rounded, exact, strict=True):
        assert one.dtype == torch.float32
        assert torch.cosine_similarity(one.flatten(), other.flatten(), dim=0) >= 0.999


def test_copies_and_pickles_of_frozen_weights_are_independent() -> None:
    affine = random_affine().requires_grad_(False)
    vectors = torch.randn(ROWS, INPUT_DIM)
    before = affine(vectors)
    for twin in (copy.deepcopy(affine), pickle.loads(pickle.dumps(affine))):
        assert torch.equal(twin(vectors), before)
        twin.weight.zero_()
        assert torch.equal(twin(vectors), affine.bias.expand(ROWS, -1))
    assert torch.equal(affine(vectors), before)


def test_what_inference_mode_has_left_behind_serves_a_training_on_top() -> None:
    affine = random_affine().requires_grad_(False)
    vectors = torch.randn(ROWS, INPUT_DIM)
    with torch.inference_mode():
        expected = affine(vectors).sum().item()
    scale = torch.ones((), requires_grad=True)
    (affine(vectors) * scale).sum().backward()
    assert scale.grad is not None
    assert scale.grad.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("dtype", EACH_INDEPENDENT_PRECISION)
def test_a_row_does_not_depend_on_how_many_rows_come_with_it(dtype: str) -> None:
    affine = Linear(67, 37).requires_grad_(False)
    MixedPrecision.set_everywhere(affine, dtype)
    vectors = torch.randn(70, 67)
    together = affine(vectors)
    for start, end in [(0, 1), (69, 70), (0, 2), (11, 16)]:
        assert torch.equal(affine(vectors[start:end]), together[start:end])


def test_names_of_its_tensors_are_a_file_format() -> None:
    shapes = {name: tuple(tensor.shape) for name, tensor in random_affine().state_dict().items()}
    assert shapes == {"weight": (OUTPUT_DIM, INPUT_DIM), "bias": (OUTPUT_DIM,)}


@needs_independent_rows
def test_a_change_that_was_not_seen_has_its_effect_after_forgetting() -> None:
    affine = Linear(32, 32).requires_grad_(False)
    vectors = torch.eye(32)
    before = affine(vectors)
    affine.weight.data[0, 1] += 9.0
    assert torch.equal(affine(vectors), before)
    affine.forget_product()
    assert torch.allclose(affine(vectors), affine.weight.t(), atol=1e-6)


def test_a_weight_that_moves_leaves_nothing_prepared_behind() -> None:
    affine = random_affine().requires_grad_(False)
    affine(torch.ones(2, affine.weight.size(1)))
    assert affine._frozen._kept is not None
    affine.to("meta")
    assert affine._frozen._kept is None
