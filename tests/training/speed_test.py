import json
import time
from pathlib import Path
from typing import Any, List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.training import Speed
from tests.metrics.workers import run_in_two_workers
from tests.training.tiny_runs import EPOCHS, run, tiny_config


def train_batches(speed: Speed, num_tokens: List[int], clock: List[float]) -> None:
    for number in num_tokens:
        clock[0] += 2.0
        outputs = [{"num_tokens": number}, {"num_tokens": 1}]
        speed.on_batch(None, [], outputs, {}, 0, 1, is_training=True)  # type: ignore[arg-type]


def test_tokens_count_from_the_end_of_the_first_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    speed = Speed("")
    trainer: Any = None
    for _ in range(2):
        metrics = {"training_tokens_per_second": 3.0}
        train_batches(speed, [1000, 29, 49], clock)
        clock[0] += 50
        speed.on_batch(trainer, [], [{"num_tokens": 1000}], {}, 0, 1, is_training=False)
        clock[0] += 50
        speed.on_epoch(trainer, metrics, 0)
        assert metrics == {"training_tokens_per_second": (30 + 50) / 4}
        clock[0] += 50


def test_an_epoch_of_one_batch_has_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = {"training_tokens_per_second": 3.0}
    speed = Speed("")
    train_batches(speed, [29], [100.0])
    speed.on_epoch(None, metrics, 0)  # type: ignore[arg-type]
    assert not metrics


def test_it_stands_in_the_metrics_of_each_epoch(tmp_path: Path) -> None:
    run(tiny_config(callbacks=["elmo_scratch_speed"]), tmp_path / "run")
    for name in [*(f"metrics_epoch_{epoch}" for epoch in range(EPOCHS)), "metrics"]:
        metrics = json.loads((tmp_path / "run" / f"{name}.json").read_text(encoding="utf-8"))
        assert metrics["training_tokens_per_second"] > 0


def test_a_model_that_does_not_count_its_tokens_is_an_error() -> None:
    speed, model = Speed(""), type("Silent", (), {})()
    trainer: Any = type("Trainer", (), {"model": model})()
    with pytest.raises(ConfigurationError, match="`num_tokens`, but Silent returns only loss"):
        for _ in range(2):
            speed.on_batch(trainer, [], [{"loss": 0.0}], {}, 0, 1, is_training=True)


def check_speed_of_two(rank: int) -> None:
    clock, metrics = [100.0], {"epoch": 0}
    speed = Speed("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: clock[0])
        train_batches(speed, [1000, 29 + 100 * rank], clock)
    speed.on_epoch(None, metrics, 0, is_primary=rank == 0)  # type: ignore[arg-type]
    expected = {"training_tokens_per_second": (30 + 130) / 2} if rank == 0 else {}
    assert metrics == {"epoch": 0, **expected}


def test_tokens_of_all_workers_count(tmp_path: Path) -> None:
    run_in_two_workers(check_speed_of_two, tmp_path)
