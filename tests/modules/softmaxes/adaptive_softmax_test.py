import math
import re
from typing import List

import pytest
import torch

from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules import softmaxes
from elmo_scratch.modules.softmaxes import AdaptiveSoftmax

WORDS, DIM, CUTOFFS = 23, 8, [4, 10]


def softmax_of(dtype: torch.dtype = torch.float64) -> AdaptiveSoftmax:
    torch.manual_seed(13)
    softmax = AdaptiveSoftmax(num_words=WORDS, dim=DIM, cutoffs=CUTOFFS, div_value=2.0).to(dtype)
    for name, parameter in softmax.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return softmax


@pytest.fixture
def softmax() -> AdaptiveSoftmax:
    return softmax_of()


@pytest.fixture
def states(softmax: AdaptiveSoftmax) -> torch.Tensor:
    return torch.randn(WORDS, DIM).double().requires_grad_()


def log_probabilities(softmax: AdaptiveSoftmax, states: torch.Tensor) -> torch.Tensor:
    """By the formulas of the paper, shape `(predicted, words)`."""
    tensors = dict(softmax.named_parameters())

    def layer(name: str, vectors: torch.Tensor) -> torch.Tensor:
        weight, bias = (tensors[f"adaptive.{name}.{part}"] for part in ("weight", "bias"))
        return vectors @ weight.t() + bias

    head = torch.log_softmax(layer("head", states), dim=1)
    parts = [head[:, : CUTOFFS[0]]]
    for cluster in (0, 1):
        scores = layer(f"tail.{cluster}.1", layer(f"tail.{cluster}.0", states))
        chosen = head[:, CUTOFFS[0] + cluster].unsqueeze(1)
        parts.append(chosen + torch.log_softmax(scores, dim=1))
    return torch.cat(parts, dim=1)


def test_the_loss_of_even_scores_can_be_counted() -> None:
    softmax = AdaptiveSoftmax(num_words=7, dim=2, cutoffs=[3], div_value=1.0)
    for parameter in softmax.parameters():
        torch.nn.init.zeros_(parameter)
    losses = softmax(torch.ones(3, 2), torch.tensor([0, 3, 6])).losses
    # Three words and a cluster of four share the head.
    assert losses.tolist() == pytest.approx([math.log(4), math.log(16), math.log(16)])


def test_losses_are_those_of_the_formulas(softmax: AdaptiveSoftmax, states: torch.Tensor) -> None:
    expected = -log_probabilities(softmax, states).diagonal()
    for scored in (
        softmax.train()(states, torch.arange(WORDS)),
        softmax.eval()(states, torch.arange(WORDS)),
    ):
        assert torch.allclose(scored.losses, expected)
        assert torch.allclose(scored.loss, expected.mean())
        assert scored.is_exact


def test_gradients_are_those_of_the_formulas(
    softmax: AdaptiveSoftmax, states: torch.Tensor
) -> None:
    inputs = [states, *softmax.parameters()]
    ours = torch.autograd.grad(softmax(states, torch.arange(WORDS)).loss, inputs)
    theirs = torch.autograd.grad(-log_probabilities(softmax, states).diagonal().mean(), inputs)
    for our, their in zip(ours, theirs, strict=True):
        assert torch.allclose(our, their)


def test_probabilities_sum_to_one(softmax: AdaptiveSoftmax, states: torch.Tensor) -> None:
    one_state = states[:1].expand(WORDS, -1)
    losses = softmax(one_state, torch.arange(WORDS)).losses
    assert (-losses).exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_the_best_words_are_found_in_evaluation_whatever_the_chunks(
    softmax: AdaptiveSoftmax, states: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = log_probabilities(softmax, states).topk(5).indices
    targets = torch.zeros(WORDS, dtype=torch.long)
    for size in (1, 3 * WORDS, 2**24):
        monkeypatch.setattr(softmaxes, "CHUNK_SIZE", size)
        assert torch.equal(softmax.eval()(states, targets).best, expected)


@pytest.mark.parametrize("cutoffs", [[1], [3, 7], [5, 20], [90], [40, 60, 80]])
@pytest.mark.parametrize("num_words", [91, 500])
def test_the_best_words_are_found_wherever_they_are(num_words: int, cutoffs: List[int]) -> None:
    torch.manual_seed(13)
    softmax = AdaptiveSoftmax(num_words=num_words, dim=8, cutoffs=cutoffs, div_value=1.5).double()
    for spread in (0.1, 1.0, 10.0):
        states = spread * torch.randn(64, 8).double()
        best = softmax.eval()(states, torch.zeros(64, dtype=torch.long)).best
        assert torch.equal(best, softmax.adaptive.log_prob(states).topk(5).indices)


def test_clusters_are_looked_into_only_for_what_they_may_hold(
    softmax: AdaptiveSoftmax, states: torch.Tensor
) -> None:
    read: List[int] = []
    for tail in softmax.adaptive.tail:
        tail.register_forward_hook(lambda _, inputs, __: read.append(len(inputs[0])))
    head = dict(softmax.named_parameters())["adaptive.head.bias"]
    with torch.no_grad():
        # Five of the words are in the head and the first cluster.
        head[CUTOFFS[0] + 1] -= 100.0
    targets = torch.zeros(WORDS, dtype=torch.long)
    best = softmax.eval()(states, targets).best
    assert read == [WORDS]
    assert torch.equal(best, log_probabilities(softmax, states).topk(5).indices)


def test_no_best_words_are_looked_for_in_training(
    softmax: AdaptiveSoftmax, states: torch.Tensor
) -> None:
    best = softmax(states, torch.arange(WORDS)).best
    assert best.shape == (WORDS, 0) and best.dtype == torch.long


def test_a_single_prediction_is_possible(softmax: AdaptiveSoftmax, states: torch.Tensor) -> None:
    for target in (0, 4, 22):
        scored = softmax.eval()(states[:1], torch.tensor([target]))
        expected = -log_probabilities(softmax, states[:1])[0, target]
        assert torch.allclose(scored.losses, expected.unsqueeze(0))
        assert scored.best.shape == (1, 5)


def test_only_the_mean_loss_has_a_gradient(softmax: AdaptiveSoftmax, states: torch.Tensor) -> None:
    scored = softmax.eval()(states, torch.arange(WORDS))
    assert scored.loss.requires_grad
    assert not scored.losses.requires_grad and not scored.best.requires_grad


def test_products_may_run_in_less_precision() -> None:
    softmax = softmax_of(torch.float32)
    states, targets = torch.randn(WORDS, DIM), torch.arange(WORDS)
    exact = softmax(states, targets).losses
    MixedPrecision.set_everywhere(softmax, "bfloat16")
    rounded = softmax(states, targets).losses
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    assert torch.allclose(rounded, exact, atol=0.1)


@pytest.mark.parametrize(
    "num_words, cutoffs",
    [(2, [1]), (10, [1, 2]), (10_001, [500, 2500]), (793_471, [39673, 198367])],
)
def test_clusters_begin_at_shares_of_the_vocabulary(num_words: int, cutoffs: List[int]) -> None:
    softmax = AdaptiveSoftmax(num_words=num_words, dim=16)
    assert softmax.adaptive.cutoffs == [*cutoffs, num_words]


@pytest.mark.parametrize("cutoffs", [[], [0, 4], [4, 4], [10, 4], [4, 23], [4, 30]])
def test_cutoffs_that_do_not_rise_are_an_error(cutoffs: List[int]) -> None:
    message = f"words, 23, but got {cutoffs}"
    with pytest.raises(ValueError, match=re.escape(message)):
        AdaptiveSoftmax(num_words=WORDS, dim=DIM, cutoffs=cutoffs)


@pytest.mark.parametrize("div_value", [-1.0, 0.0, 3.0])
def test_a_cluster_without_dimensions_is_an_error(div_value: float) -> None:
    message = f"8 dimensions can be divided 2 times, but got {div_value}"
    with pytest.raises(ValueError, match=re.escape(message)):
        AdaptiveSoftmax(num_words=WORDS, dim=DIM, cutoffs=CUTOFFS, div_value=div_value)


def test_names_of_its_tensors_are_a_file_format(softmax: AdaptiveSoftmax) -> None:
    layers = ["head", "tail.0.0", "tail.0.1", "tail.1.0", "tail.1.1"]
    assert set(softmax.state_dict()) == {
        f"adaptive.{layer}.{part}" for layer in layers for part in ("weight", "bias")
    }
