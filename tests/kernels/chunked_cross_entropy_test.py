from typing import Optional

import pytest
import torch
from torch.nn.functional import cross_entropy, linear

from elmo_scratch.kernels import cross_entropy as chunks
from elmo_scratch.kernels import weight_gradients as products
from elmo_scratch.kernels.cross_entropy import chunked_cross_entropy
from elmo_scratch.kernels.linear import PackedLinear

PREDICTED, WORDS, DIM = 7, 500, 3


@pytest.fixture(params=[1, 3, 2**10])
def rows_of_a_chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(chunks, "MIN_ROWS", 1)
    monkeypatch.setattr(chunks, "CHUNK_SIZE", request.param * WORDS)
    return request.param


@pytest.mark.parametrize("only_targets", [None, torch.tensor([4, 7, 499]), torch.arange(1, 500)])
@pytest.mark.usefixtures("rows_of_a_chunk")
def test_it_is_that_of_a_matrix_of_all_scores(only_targets: Optional[torch.Tensor]) -> None:
    torch.manual_seed(13)
    states, weight, bias = (
        torch.randn(size).double() for size in ((PREDICTED, DIM), (WORDS, DIM), (WORDS,))
    )
    targets = torch.tensor([4, 0, 499, 4, 9, 1, 4])
    inputs = [tensor.requires_grad_() for tensor in (states, weight, bias)]
    ours = chunked_cross_entropy(
        states, weight, bias, targets, dtype=bias.dtype, num_best=5, only_targets=only_targets
    )
    scores = linear(*inputs)
    if only_targets is not None:
        hidden = torch.zeros(PREDICTED, WORDS, dtype=torch.bool)
        hidden[:, only_targets] = True
        hidden[torch.arange(PREDICTED), targets] = False
        scores = scores.masked_fill(hidden, -torch.inf)
    theirs = cross_entropy(scores, targets)
    assert torch.allclose(ours.loss, theirs)
    assert torch.allclose(ours.losses, cross_entropy(scores, targets, reduction="none"))
    assert torch.equal(ours.best[:, 0], scores.argmax(dim=1))
    for our, their in zip(
        torch.autograd.grad(ours.loss, inputs), torch.autograd.grad(theirs, inputs), strict=True
    ):
        assert torch.allclose(our, their)


@pytest.mark.parametrize(
    "predicted, words, num_chunks", [(1, 10, 1), (1280, 10_001, 5), (2560, 793_471, 10), (0, 10, 1)]
)
def test_chunks_are_of_a_size_that_suits_processors(
    predicted: int, words: int, num_chunks: int
) -> None:
    assert chunks._num_chunks(predicted, words, torch.device("cpu")) == num_chunks


def test_on_a_gpu_there_are_fewer() -> None:
    numbers = [chunks._num_chunks(2560, 10_000, torch.device(kind)) for kind in ("cpu", "cuda")]
    assert numbers == [10, 1]


def test_a_gradient_can_be_taken_twice() -> None:
    torch.manual_seed(13)
    weight = torch.randn(WORDS, DIM, requires_grad=True)
    states, bias, targets = torch.randn(PREDICTED, DIM), torch.zeros(WORDS), torch.arange(PREDICTED)
    loss = chunked_cross_entropy(
        states, weight, bias, targets, dtype=torch.float32, num_best=1
    ).loss
    (once,) = torch.autograd.grad(loss, weight, retain_graph=True)
    loss.backward(retain_graph=True)
    (3 * loss).backward()
    assert weight.grad is not None
    assert torch.allclose(weight.grad, 4 * once)


@pytest.mark.parametrize("predicted", [1, 127, 129, 300, 523])
def test_predictions_that_fill_up_the_last_chunk_count_for_nothing(predicted: int) -> None:
    torch.manual_seed(13)
    sizes = ((predicted, DIM), (WORDS, DIM), (WORDS,))
    states, weight, bias = (torch.randn(size).double() for size in sizes)
    inputs = [tensor.requires_grad_() for tensor in (states, weight, bias)]
    targets = torch.randint(WORDS, (predicted,))
    ours = chunked_cross_entropy(states, weight, bias, targets, dtype=torch.double, num_best=5)
    scores = linear(*inputs)
    theirs = cross_entropy(scores, targets)
    assert torch.allclose(ours.losses, cross_entropy(scores, targets, reduction="none"))
    assert torch.allclose(ours.loss, theirs)
    assert torch.equal(ours.best, scores.topk(5).indices)
    for our, their in zip(
        torch.autograd.grad(ours.loss, inputs), torch.autograd.grad(theirs, inputs), strict=True
    ):
        assert our.shape == their.shape and torch.allclose(our, their)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_batches_with_other_numbers_of_predictions_share_the_kernels_of_products(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 1)
    multiply, seen = PackedLinear.__call__, set()

    def noted(product: PackedLinear, vectors: torch.Tensor, *bias: torch.Tensor) -> torch.Tensor:
        seen.add(len(vectors))
        return multiply(product, vectors, *bias)

    monkeypatch.setattr(PackedLinear, "__call__", noted)
    weight = torch.randn(WORDS, DIM, requires_grad=True)
    for predicted in range(1000, 1280, 7):
        states, targets = torch.randn(predicted, DIM), torch.randint(WORDS, (predicted,))
        chunked_cross_entropy(states, weight, torch.zeros(WORDS), targets, dtype=dtype, num_best=1)
    assert max(seen) == chunks.MIN_ROWS
    assert all(rows % 16 == 0 for rows in seen)


@pytest.mark.parametrize("words_at_once", [1, 7, 40])
def test_rounded_gradients_are_close_however_many_words_they_are_made_for_at_once(
    words_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "OUTPUTS_OF_A_SUM", words_at_once)
    torch.manual_seed(13)
    states, weight = torch.randn(30, 8).requires_grad_(), torch.randn(40, 8).requires_grad_()
    bias, targets = torch.randn(40).requires_grad_(), torch.randint(40, (30,))
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        scored = chunked_cross_entropy(states, weight, bias, targets, dtype=dtype, num_best=1)
        found.append(torch.autograd.grad(scored.loss, [states, weight, bias]))
    for exact, rounded in zip(*found, strict=True):
        assert rounded.dtype == torch.float32
        assert (rounded - exact).norm() <= 0.02 * exact.norm()
