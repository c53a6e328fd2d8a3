import math
from pathlib import Path

import pytest
import torch

from elmo_scratch.metrics import Perplexity
from tests.metrics.workers import run_in_two_workers


def test_batches_count_by_their_tokens() -> None:
    metric = Perplexity()
    metric(torch.full((900,), 1.0))
    metric(torch.full((100,), 3.0))
    assert metric.loss == pytest.approx(1.2)
    # exp(1.2), where exp(2) = 7.39.
    assert Perplexity.of_loss(metric.loss) == pytest.approx(3.3201, abs=5e-5)


def test_an_even_guess_among_words_has_their_number_as_its_perplexity() -> None:
    metric = Perplexity()
    metric(-torch.full((13,), 1 / 17, dtype=torch.float64).log())
    assert Perplexity.of_loss(metric.loss) == pytest.approx(17)


def test_sums_are_made_in_double_precision() -> None:
    metric = Perplexity()
    metric(torch.tensor([2.0**24, 1.0, 1.0, 1.0]))  # float32 can't hold 2^24 + 1
    metric(torch.tensor([1.0]))
    assert metric.loss == (2**24 + 4) / 5


def test_only_values_are_kept_and_no_graph() -> None:
    losses = torch.ones(3, requires_grad=True)
    metric = Perplexity()
    metric(losses * 2)
    assert isinstance(metric.loss, float)
    assert metric.loss == 2.0


def test_a_reset_forgets_everything() -> None:
    metric = Perplexity()
    metric(torch.full((5,), 4.0))
    metric.reset()
    metric(torch.full((2,), 1.0))
    assert metric.loss == 1.0


def test_nothing_seen_is_a_loss_of_zero() -> None:
    metric = Perplexity()
    assert (metric.loss, Perplexity.of_loss(metric.loss)) == (0.0, 1.0)
    metric(torch.empty(0))
    assert (metric.loss, Perplexity.of_loss(metric.loss)) == (0.0, 1.0)


def test_a_hopeless_model_has_an_infinite_perplexity() -> None:
    assert Perplexity.of_loss(1000.0) == math.inf
    assert Perplexity.of_loss(2.0) == pytest.approx(7.389056)


def check_worker(rank: int) -> None:
    metric = Perplexity()
    metric(torch.full((900,), 1.0) if rank == 0 else torch.full((100,), 3.0))
    assert metric.loss == pytest.approx(1.2)


def test_workers_count_together(tmp_path: Path) -> None:
    run_in_two_workers(check_worker, tmp_path)
