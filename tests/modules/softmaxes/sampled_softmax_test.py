import importlib
import math
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, Callable, Tuple
from unittest.mock import patch

import pytest
import torch
from allennlp.nn.parallel import ddp_accelerator
from allennlp.training import gradient_descent_trainer
from allennlp.training.optimizers import AdagradOptimizer, Optimizer
from torch.nn.functional import cross_entropy, linear
from torch.nn.parallel import DistributedDataParallel

from elmo_scratch.kernels.cross_entropy import chunked_cross_entropy
from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules import softmaxes
from elmo_scratch.modules.softmaxes import FullSoftmax, SampledSoftmax
from tests.metrics.workers import run_in_two_workers

PREDICTED, WORDS, DIM, SAMPLES = 9, 40, 3, 12


def softmax_of(seed: int = 13, **settings: Any) -> SampledSoftmax:
    torch.manual_seed(seed)
    settings = {"num_words": WORDS, "dim": DIM, "num_samples": SAMPLES, **settings}
    softmax = SampledSoftmax(**settings).double()
    torch.nn.init.normal_(softmax.bias)
    return softmax


@pytest.fixture
def softmax() -> SampledSoftmax:
    return softmax_of()


@pytest.fixture
def states(softmax: SampledSoftmax) -> torch.Tensor:
    return torch.randn(PREDICTED, DIM).double().requires_grad_()


@pytest.fixture
def targets() -> torch.Tensor:
    return torch.tensor([4, 1, 10, 4, 39, 1, 38, 2, 37])


def full_like(softmax: SampledSoftmax) -> FullSoftmax:
    """The exact softmax with the same weights."""
    full = FullSoftmax(num_words=WORDS, dim=DIM).double()
    full.load_state_dict({"weight": softmax.weight, "bias": softmax.bias})
    return full


def count_all_once(softmax: SampledSoftmax) -> None:
    """Leaves out the correction."""
    softmax.sampler.log_expected_counts = (  # type: ignore[method-assign]
        lambda ids, num_tries: torch.zeros(len(ids))
    )


def losses_by_loop(
    softmax: SampledSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """Prediction by prediction, with the words that `softmax` draws next."""
    sampled = deepcopy(softmax.sampler)()

    def score(state: torch.Tensor, word: int) -> torch.Tensor:
        probability = math.log((word + 1) / word) / math.log(WORDS)
        expected = 1 - (1 - probability) ** sampled.num_tries
        return state @ softmax.weight[word] + softmax.bias[word] - math.log(expected)

    losses = []
    for state, target in zip(states, targets.tolist(), strict=True):
        others = [word for word in sampled.ids.tolist() if word != target]
        scores = torch.stack([score(state, word) for word in (target, *others)])
        losses.append(torch.logsumexp(scores, dim=0) - scores[0])
    return torch.stack(losses)


def test_losses_are_those_of_a_loop_over_predictions(
    softmax: SampledSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    sampled = deepcopy(softmax.sampler)().ids
    # Both kinds of targets are there: those among the negatives, and others.
    assert 0 < torch.isin(targets, sampled).sum() < PREDICTED
    expected = losses_by_loop(softmax, states, targets)
    scored = softmax(states, targets)
    assert torch.allclose(scored.losses, expected)
    assert torch.allclose(scored.loss, expected.mean())


def test_the_loss_of_a_coin_is_one_bit() -> None:
    # All words but padding are drawn.
    softmax = softmax_of(num_words=3, num_samples=2)
    torch.nn.init.zeros_(softmax.weight)
    torch.nn.init.zeros_(softmax.bias)
    count_all_once(softmax)
    scored = softmax(torch.ones(2, DIM).double(), torch.tensor([1, 2]))
    assert scored.losses.tolist() == pytest.approx([math.log(2)] * 2)


@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_are_those_of_a_loop_over_predictions(
    sparse: bool, states: torch.Tensor, targets: torch.Tensor
) -> None:
    softmax = softmax_of(sparse=sparse)
    inputs = (states, softmax.weight, softmax.bias)
    theirs = torch.autograd.grad(2.5 * losses_by_loop(softmax, states, targets).mean(), inputs)
    ours = torch.autograd.grad(2.5 * softmax(states, targets).loss, inputs)
    assert [gradient.is_sparse for gradient in ours] == [False, sparse, sparse]
    for our, their in zip(ours, theirs, strict=True):
        assert torch.allclose(our.to_dense(), their)


def test_a_sparse_gradient_holds_the_rows_in_play(
    softmax: SampledSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    in_play = {*deepcopy(softmax.sampler)().ids.tolist(), *targets.tolist()}
    softmax(states, targets).loss.backward()
    for parameter in (softmax.weight, softmax.bias):
        assert parameter.grad is not None
        assert parameter.grad.coalesce().indices()[0].tolist() == sorted(in_play)


def error_of_gradients(num_samples: int, rounds: int, is_corrected: bool = True) -> float:
    """Distance of the mean gradient over samples from the exact one, as a share of that."""
    softmax = softmax_of(num_samples=num_samples)
    if not is_corrected:
        count_all_once(softmax)
    states = torch.randn(64, DIM).double().requires_grad_()
    targets = torch.randint(1, WORDS, (64,))
    # Padding is never drawn, so it is no word of the exact softmax here.
    bias = softmax.bias.detach().clone()
    bias[0] = -torch.inf
    loss = cross_entropy(linear(states, softmax.weight.detach(), bias), targets)
    (exact,) = torch.autograd.grad(loss, states)
    mean = torch.zeros_like(exact)
    for _ in range(rounds):
        (gradient,) = torch.autograd.grad(softmax(states, targets).loss, states)
        mean += gradient / rounds
    return float((mean - exact).norm() / exact.norm())


def test_gradients_tend_to_those_of_the_full_softmax() -> None:
    # Of 39 words. The noise of a single sample of 25 is 15 %.
    errors = [error_of_gradients(num_samples, rounds=200) for num_samples in (12, 25, 36)]
    assert errors[1] < errors[0] / 2.5 and errors[2] < errors[1] / 2.5
    assert errors[2] < 0.012
    assert error_of_gradients(25, rounds=200, is_corrected=False) > 1.25 * errors[1]


def test_evaluation_is_that_of_the_full_softmax(
    softmax: SampledSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    full = full_like(softmax)
    with torch.no_grad():
        full.bias[0] = -torch.inf  # padding is no word
    exact, ours = full(states, targets), softmax.eval()(states, targets)
    assert ours.is_exact
    assert torch.equal(ours.loss, exact.loss)
    assert torch.equal(ours.losses, exact.losses)
    assert torch.equal(ours.best, exact.best)


def test_padding_takes_nothing_from_the_words_in_evaluation(
    softmax: SampledSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    softmax.eval()
    before = softmax(states, targets)
    with torch.no_grad():
        softmax.bias[0] += 20.0
    after = softmax(states, targets)
    assert torch.equal(after.losses, before.losses)
    assert not (after.best == 0).any()
    words = torch.arange(1, WORDS)
    for state in states:
        losses = softmax(state.expand(len(words), -1), words).losses
        assert (-losses).exp().sum().item() == pytest.approx(1.0)


def test_evaluation_draws_nothing(
    softmax: SampledSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    softmax.eval()(states, targets)
    assert softmax.sampler.num_draws == 0
    softmax.train()(states, targets)
    assert softmax.sampler.num_draws == 1


def test_training_says_that_it_is_not_exact(
    softmax: SampledSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    scored = softmax(states, targets)
    assert not scored.is_exact
    assert scored.best.shape == (PREDICTED, 0)
    assert scored.loss.requires_grad and not scored.losses.requires_grad


def test_a_restored_softmax_goes_on_with_the_same_losses(
    softmax: SampledSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    softmax(states, targets)
    saved = deepcopy(softmax.state_dict())
    expected = [softmax(states, targets).loss.item() for _ in range(3)]
    assert len(set(expected)) == 3
    restored = SampledSoftmax(num_words=WORDS, dim=DIM, num_samples=SAMPLES).double()
    restored.load_state_dict(saved)
    assert [restored(states, targets).loss.item() for _ in range(3)] == expected


def test_an_optimizer_moves_the_rows_in_play_as_with_dense_gradients(
    states: torch.Tensor, targets: torch.Tensor
) -> None:
    trained = []
    for sparse in (True, False):
        softmax = softmax_of(sparse=sparse)
        optimizer = AdagradOptimizer(
            list(softmax.named_parameters()), lr=0.2, initial_accumulator_value=1.0
        )
        for _ in range(3):
            optimizer.zero_grad()
            softmax(states.detach(), targets).loss.backward()
            norm = gradient_descent_trainer.clip_grad_norm_(softmax.parameters(), 0.1)
            assert norm > 0.1
            optimizer.step()
        trained.append(softmax)
    for ours, theirs in zip(*(softmax.parameters() for softmax in trained), strict=True):
        assert torch.allclose(ours, theirs)
    assert not torch.equal(trained[0].weight, softmax_of().weight)


@pytest.mark.parametrize("name", ["sparse_adam", "dense_sparse_adam"])
def test_rows_that_are_not_in_play_stay(
    name: str, softmax: SampledSoftmax, states: torch.Tensor, targets: torch.Tensor
) -> None:
    before = deepcopy(softmax)
    optimizer = Optimizer.by_name(name)(list(softmax.named_parameters()))
    in_play = torch.cat([deepcopy(softmax.sampler)().ids, targets]).unique().tolist()
    softmax(states, targets).loss.backward()
    optimizer.step()
    moved = (softmax.weight != before.weight).any(dim=1).nonzero().squeeze(1)
    assert moved.tolist() == in_play


def test_products_may_run_in_less_precision(states: torch.Tensor, targets: torch.Tensor) -> None:
    softmax = softmax_of().float()
    exact = deepcopy(softmax)(states.float(), targets)
    MixedPrecision.set_everywhere(softmax, "bfloat16")
    rounded = softmax(states.float(), targets)
    assert rounded.losses.dtype == torch.float32
    assert not torch.equal(rounded.losses, exact.losses)
    assert torch.allclose(rounded.losses, exact.losses, atol=0.05)


@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_of_less_precision_are_close(sparse: bool) -> None:
    exact = softmax_of(num_words=400, dim=32, num_samples=90, sparse=sparse).float()
    rounded = deepcopy(exact)
    MixedPrecision.set_everywhere(rounded, "bfloat16")
    states, targets = torch.randn(300, 32, requires_grad=True), torch.randint(1, 400, (300,))
    found = [
        torch.autograd.grad(each(states, targets).loss, [states, each.weight, each.bias])
        for each in (exact, rounded)
    ]
    for theirs, ours in zip(*found, strict=True):
        assert (ours.dtype, ours.is_sparse) == (torch.float32, theirs.is_sparse)
        ours, theirs = ours.to_dense(), theirs.to_dense()
        assert not torch.equal(ours, theirs)
        assert (ours - theirs).norm() <= 0.02 * theirs.norm()


class Guesser(torch.nn.Module):
    """A layer and a softmax, which is asked or is not to average its gradients by itself."""

    def __init__(self, seed: int, is_asked: bool = False) -> None:
        super().__init__()
        self.softmax = softmax_of(seed)
        self.layer = torch.nn.Linear(DIM, DIM).double()
        names = self.softmax.average_gradients() if is_asked else []
        self._ddp_params_and_buffers_to_ignore = [f"softmax.{name}" for name in names]

    def forward(self, states: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return self.softmax(self.layer(states), targets).loss

    def in_play(self, targets: torch.Tensor) -> torch.Tensor:
        """The words of the next batch."""
        return torch.cat([deepcopy(self.softmax.sampler)().ids, targets]).unique()


def batch_of_all() -> Tuple[torch.Tensor, torch.Tensor]:
    """The same in each worker."""
    torch.manual_seed(13)
    return torch.randn(8, DIM).double(), torch.randint(1, WORDS, (8,))


def worker_of(rank: int, is_asked: bool) -> DistributedDataParallel:
    """Each would begin with weights and draw words of its own if nobody gave it those of others."""
    return DistributedDataParallel(Guesser(13 + rank, is_asked))


def run_as_workers(check: Callable[[int], None], folder: Path) -> None:
    # `DistributedDataParallel` imports it, for seconds: once here, not in each worker anew.
    importlib.import_module("torch._dynamo")
    run_in_two_workers(check, folder)


def check_as_worker(rank: int, is_asked: bool, of_first: int) -> None:
    """Both workers with parts of a batch get the gradients of one with all of it."""
    alone, worker = Guesser(13), worker_of(rank, is_asked)
    states, targets = batch_of_all()
    part = slice(None, of_first) if rank == 0 else slice(of_first, None)
    weight = len(targets[part]) / (len(targets) / 2)
    for num_draws in (1, 2, 3):
        in_play = alone.in_play(targets)
        alone.zero_grad()
        worker.zero_grad()
        alone(states, targets).backward()
        (weight * worker(states[part], targets[part])).backward()
        assert worker.module.softmax.sampler.num_draws == num_draws
        for (name, one), shared in zip(alone.named_parameters(), worker.parameters(), strict=True):
            assert torch.equal(one, shared)
            assert one.grad is not None and shared.grad is not None
            assert shared.grad.is_sparse == (is_asked and name.startswith("softmax."))
            assert torch.allclose(one.grad, shared.grad.to_dense())
            if shared.grad.is_sparse:
                assert torch.equal(shared.grad.coalesce().indices()[0], in_play)


@pytest.mark.parametrize("of_first", [4, 5, 8])
@pytest.mark.parametrize("is_asked", [False, True])
def test_two_workers_train_like_one(is_asked: bool, of_first: int, tmp_path: Path) -> None:
    run_as_workers(partial(check_as_worker, is_asked=is_asked, of_first=of_first), tmp_path)


def check_accumulation(rank: int) -> None:
    alone, worker = Guesser(13), worker_of(rank, is_asked=True)
    states, targets = batch_of_all()
    part = slice(4 * rank, 4 * rank + 4)
    for is_each_synced in (True, False):
        alone.zero_grad()
        worker.zero_grad()
        for number in range(2):
            batch = states.roll(number, dims=0)
            (alone(batch, targets) / 2).backward()
            is_synced = is_each_synced or number == 1
            with nullcontext() if is_synced else worker.no_sync():
                (worker(batch[part], targets[part]) / 2).backward()
        for one, shared in zip(alone.parameters(), worker.parameters(), strict=True):
            assert one.grad is not None and shared.grad is not None
            assert torch.allclose(one.grad, shared.grad.to_dense())


def test_gradients_of_several_batches_add_up(tmp_path: Path) -> None:
    run_as_workers(check_accumulation, tmp_path)


def check_optimizer(rank: int, name: str) -> None:
    alone, worker = Guesser(13), worker_of(rank, is_asked=True)
    alone.softmax.sparse = True  # as it is in one process
    states, targets = batch_of_all()
    part = slice(4 * rank, 4 * rank + 4)
    worker(states[part], targets[part])  # begins alike and draws a first time
    alone(states, targets)
    softmaxes = [alone.softmax, worker.module.softmax]
    optimizers = [Optimizer.by_name(name)(list(one.named_parameters())) for one in softmaxes]
    for _ in range(3):
        in_play, before = alone.in_play(targets), softmaxes[1].weight.detach().clone()
        for optimizer in optimizers:
            optimizer.zero_grad()
        alone(states, targets).backward()
        worker(states[part], targets[part]).backward()
        norms = [ddp_accelerator.clip_grad_norm_(one.parameters(), 0.1) for one in softmaxes]
        assert torch.allclose(norms[0], norms[1]) and norms[0] > 0.1
        for optimizer in optimizers:
            optimizer.step()
        moved = (softmaxes[1].weight != before).any(dim=1).nonzero().squeeze(1)
        assert torch.equal(moved, in_play)
    for one, shared in zip(*(softmax.parameters() for softmax in softmaxes), strict=True):
        assert torch.allclose(one, shared)
        of_first = shared.detach().clone()
        torch.distributed.broadcast(of_first, src=0)
        assert torch.equal(of_first, shared)


@pytest.mark.parametrize(
    "name", ["elmo_scratch_adagrad", "adagrad", "sparse_adam", "dense_sparse_adam"]
)
def test_workers_move_the_rows_in_play_as_one_does(name: str, tmp_path: Path) -> None:
    run_as_workers(partial(check_optimizer, name=name), tmp_path)


def check_evaluation(rank: int) -> None:
    worker = worker_of(rank, is_asked=True)
    states, targets = batch_of_all()
    worker(states, targets)
    with patch.object(torch.distributed, "all_reduce", side_effect=AssertionError):
        assert worker.module.softmax.eval()(states, targets).is_exact


def test_workers_evaluate_each_on_its_own(tmp_path: Path) -> None:
    run_as_workers(check_evaluation, tmp_path)


def test_a_process_of_its_own_averages_nothing(softmax: SampledSoftmax) -> None:
    assert softmax.average_gradients() == []
    assert FullSoftmax(num_words=WORDS, dim=DIM).average_gradients() == []


def test_names_of_its_tensors_are_a_file_format(softmax: SampledSoftmax) -> None:
    assert set(softmax.state_dict()) == {"weight", "bias", "sampler.seed", "sampler.num_draws"}


def test_batches_with_other_words_in_play_share_the_kernels_of_products() -> None:
    softmax = softmax_of(num_words=1000, num_samples=200).float()
    sizes, num_in_play = set(), set()
    with patch.object(softmaxes, "chunked_cross_entropy", wraps=chunked_cross_entropy) as seen:
        for _ in range(20):
            states = torch.randn(PREDICTED, DIM)
            softmax(states, torch.randint(1, 1000, (PREDICTED,))).loss.backward()
            sizes.add(len(seen.call_args.args[1]))
            assert isinstance(softmax.weight.grad, torch.Tensor)
            num_in_play.add(softmax.weight.grad.coalesce()._nnz())
            softmax.zero_grad(set_to_none=True)
    assert sizes == {256}
    assert len(num_in_play) > 5
    assert max(num_in_play) <= 200 + PREDICTED


def test_more_samples_than_words_are_an_error() -> None:
    with pytest.raises(ValueError, match="at most .* padding, 39, but got 8192"):
        SampledSoftmax(num_words=WORDS, dim=DIM)
