import math
from pathlib import Path
from typing import Any, Callable, List

import pytest
import torch
from torch.nn.functional import cross_entropy, linear
from torch.utils._python_dispatch import TorchDispatchMode

from elmo_scratch.kernels import cross_entropy as chunked_cross_entropy
from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules.softmaxes import FullSoftmax

PREDICTED, WORDS, DIM = 7, 11, 3
ROWS_OF_A_CHUNK = 3  # so 7 predictions make chunks of 3, 3 and 1


@pytest.fixture
def softmax(monkeypatch: pytest.MonkeyPatch) -> FullSoftmax:
    monkeypatch.setattr(chunked_cross_entropy, "CHUNK_SIZE", ROWS_OF_A_CHUNK * WORDS + 2)
    monkeypatch.setattr(chunked_cross_entropy, "MIN_ROWS", 1)
    torch.manual_seed(13)
    softmax = FullSoftmax(num_words=WORDS, dim=DIM).double()
    torch.nn.init.normal_(softmax.bias)
    return softmax


@pytest.fixture
def states(softmax: FullSoftmax) -> torch.Tensor:
    return torch.randn(PREDICTED, DIM).double().requires_grad_()


@pytest.fixture
def targets(softmax: FullSoftmax) -> torch.Tensor:
    return torch.tensor([4, 0, 10, 4, 9, 1, 4])


def test_the_loss_of_a_coin_is_one_bit() -> None:
    softmax = FullSoftmax(num_words=2, dim=1)
    torch.nn.init.zeros_(softmax.weight)
    scored = softmax(torch.ones(3, 1), torch.tensor([0, 1, 1]))
    assert scored.losses.tolist() == pytest.approx([math.log(2)] * 3)
    assert scored.loss.item() == pytest.approx(math.log(2))


def test_losses_are_cross_entropies(
    softmax: FullSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    scored = softmax(states, targets)
    scores = linear(states, softmax.weight, softmax.bias)
    assert torch.allclose(scored.losses, cross_entropy(scores, targets, reduction="none"))
    assert torch.allclose(scored.loss, cross_entropy(scores, targets))


def test_gradients_are_those_of_cross_entropy(
    softmax: FullSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    inputs = (states, softmax.weight, softmax.bias)
    ours = torch.autograd.grad(2.5 * softmax(states, targets).loss, inputs)
    scores = linear(states, softmax.weight, softmax.bias)
    theirs = torch.autograd.grad(2.5 * cross_entropy(scores, targets), inputs)
    for our, their in zip(ours, theirs, strict=True):
        assert torch.allclose(our, their)


def test_gradients_are_those_of_finite_differences(
    softmax: FullSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    def loss(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        weights = {"weight": weight, "bias": bias}
        return torch.func.functional_call(softmax, weights, (states, targets)).loss

    assert torch.autograd.gradcheck(loss, (states, softmax.weight, softmax.bias))


def test_the_chunks_do_not_show(
    softmax: FullSoftmax,
    states: torch.Tensor,
    targets: torch.Tensor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_chunks = softmax(states, targets)
    monkeypatch.setattr(chunked_cross_entropy, "CHUNK_SIZE", 2**22)
    at_once = softmax(states, targets)
    assert torch.allclose(in_chunks.losses, at_once.losses)
    assert torch.equal(in_chunks.best, at_once.best)


def test_a_chunk_holds_one_prediction_at_least(
    softmax: FullSoftmax,
    states: torch.Tensor,
    targets: torch.Tensor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = softmax(states, targets).losses
    monkeypatch.setattr(chunked_cross_entropy, "CHUNK_SIZE", 1)
    assert torch.allclose(softmax(states, targets).losses, expected)


def test_the_best_words_come_best_first(
    softmax: FullSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    best = softmax(states, targets).best
    scores = linear(states, softmax.weight, softmax.bias)
    assert torch.equal(best, scores.topk(5).indices)


def test_a_vocabulary_of_three_words_has_three_best() -> None:
    softmax = FullSoftmax(num_words=3, dim=1)
    softmax.weight.data = torch.tensor([[1.0], [3.0], [2.0]])
    best = softmax(torch.tensor([[1.0], [-1.0]]), torch.tensor([0, 0])).best
    assert best.tolist() == [[1, 2, 0], [0, 2, 1]]


def test_huge_scores_do_not_overflow() -> None:
    softmax = FullSoftmax(num_words=2, dim=1)
    softmax.weight.data = torch.tensor([[1e4], [-1e4]])
    scored = softmax(torch.ones(2, 1), torch.tensor([0, 1]))
    assert scored.losses.tolist() == [0.0, 2e4]


def test_only_the_mean_loss_has_a_gradient(
    softmax: FullSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    scored = softmax(states, targets)
    assert scored.loss.requires_grad
    assert not scored.losses.requires_grad and not scored.best.requires_grad


def test_an_unsupported_second_derivative_is_an_error(
    softmax: FullSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    loss = softmax(states, targets).loss
    (gradient,) = torch.autograd.grad(loss**2, states, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


class RecordedOperations(TorchDispatchMode):
    """Notes every operation that PyTorch runs in the block."""

    def __init__(self) -> None:
        super().__init__()
        self.names: List[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))

    def num_products(self) -> int:
        return sum(name in ("addmm", "addmm_", "linear", "mm") for name in self.names)


@pytest.mark.parametrize("without_gradients", [torch.no_grad, torch.inference_mode])
def test_no_gradient_is_made_where_none_is_wanted(
    softmax: FullSoftmax,
    states: torch.Tensor,
    targets: torch.Tensor,
    without_gradients: Callable[[], Any],
) -> None:
    with RecordedOperations() as training:
        softmax(states, targets)
    with without_gradients(), RecordedOperations() as evaluation:
        softmax(states, targets)
    assert training.num_products() == 3 * 3  # the scores and two gradients of each chunk
    assert evaluation.num_products() == 3
    assert "zeros_like" not in evaluation.names


@pytest.mark.parametrize("words", [WORDS, 1000])
def test_products_may_run_in_less_precision(words: int) -> None:
    torch.manual_seed(13)
    softmax = FullSoftmax(num_words=words, dim=DIM)
    states, targets = torch.randn(PREDICTED, DIM, requires_grad=True), torch.arange(PREDICTED)
    inputs = (states, softmax.weight, softmax.bias)
    exact = softmax(states, targets)
    of_exact = torch.autograd.grad(exact.loss, inputs)
    MixedPrecision.set_everywhere(softmax, "bfloat16")
    rounded = softmax(states, targets)
    of_rounded = torch.autograd.grad(rounded.loss, inputs)
    assert rounded.losses.dtype == torch.float32
    assert not torch.equal(rounded.losses, exact.losses)
    # Eight bits of each number in a product, none less in the sums after it.
    assert torch.allclose(rounded.losses, exact.losses, atol=0.03)
    for ours, theirs in zip(of_rounded, of_exact, strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).norm() < 0.02 * theirs.norm()


def test_losses_are_not_rounded_to_the_precision_of_the_products() -> None:
    # 100.001 and 100 would be the same in bfloat16: biases are added to products in full precision.
    softmax = FullSoftmax(num_words=2, dim=1)
    softmax.weight.data = torch.ones(2, 1)
    softmax.bias.data = torch.tensor([0.001, 0.0])
    MixedPrecision.set_everywhere(softmax, "bfloat16")
    scored = softmax(torch.full((1, 1), 100.0), torch.tensor([0]))
    assert scored.losses.item() == pytest.approx(math.log1p(math.exp(-0.001)), abs=1e-5)


@pytest.mark.exhaustive
def test_the_vocabulary_of_the_released_models_fits() -> None:
    # The scores of all 1024 predictions alone would take 3.25 GB.
    torch.manual_seed(13)
    # Other tests may have taken more before.
    Path("/proc/self/clear_refs").write_text("5")
    softmax = FullSoftmax(num_words=793_471, dim=4)
    states, targets = torch.randn(1024, 4), torch.randint(793_471, (1024,))
    scored = softmax(states, targets)
    scored.loss.backward()
    for row in (0, 255, 256, 1023):
        scores = linear(states[row], softmax.weight, softmax.bias)
        assert torch.allclose(scored.losses[row], cross_entropy(scores, targets[row]))
        assert torch.equal(scored.best[row], scores.topk(5).indices)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").open())
    assert int(status["VmHWM"].split()[0]) * 2**10 < 3.2e9


def test_it_says_that_it_is_exact(
    softmax: FullSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    assert softmax.train()(states, targets).is_exact and softmax.eval()(states, targets).is_exact


def test_names_of_its_tensors_are_a_file_format(softmax: FullSoftmax) -> None:
    assert set(softmax.state_dict()) == {"weight", "bias"}
