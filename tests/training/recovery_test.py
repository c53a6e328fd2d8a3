from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Optional, Tuple

import pytest
import torch
from allennlp.training.callbacks import ConfidenceChecksCallback
from allennlp.training.learning_rate_schedulers import LinearWithWarmup, SlantedTriangular
from allennlp.training.moving_average import ExponentialMovingAverage

from elmo_scratch.training.exact_resume import (
    Progress,
    add_last_epoch,
    end_confidence_checks,
    find_best_weights,
    reattach_moving_average,
    stretch_schedule,
    write_best_weights,
)


def trainer_of(model: torch.nn.Module, **settings: Any) -> Any:
    standard: Dict[str, Any] = {"_moving_average": None, "_primary": True, "_callbacks": []}
    return SimpleNamespace(_pytorch_model=model, model=model, **{**standard, **settings})


def assert_follows(average: ExponentialMovingAverage, weight: torch.Tensor) -> None:
    """Whether an average of 3, by halves, sees that the weight becomes 5."""
    weight.data.fill_(5.0)
    average.apply()
    average.assign_average_value()
    assert weight.item() == 4.0
    average.restore()
    assert weight.item() == 5.0


def test_a_moving_average_follows_the_model_again() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(3.0)
    average = ExponentialMovingAverage(model.named_parameters(), decay=0.5)
    average._parameters = [("weight", torch.nn.Parameter(torch.zeros(1, 1)))]
    reattach_moving_average(trainer_of(model, _moving_average=average))
    assert_follows(average, model.weight)


class OfWorkers(torch.nn.Module):
    """A model as `DistributedDataParallel` holds it."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.module = model


@pytest.mark.parametrize("of_workers", [True, False], ids=["from one to several", "and back"])
def test_a_moving_average_follows_a_model_of_another_number_of_workers(of_workers: bool) -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    one, several = model, OfWorkers(model)
    before, now = (one, several) if of_workers else (several, one)
    average = ExponentialMovingAverage(before.named_parameters(), decay=0.5)
    for kept in average._shadows.values():
        kept.fill_(3.0)
    reattach_moving_average(trainer_of(now, _moving_average=average))
    assert [name for name, _ in average._parameters] == [name for name, _ in now.named_parameters()]
    assert_follows(average, model.weight)


def test_without_a_moving_average_there_is_nothing_to_attach() -> None:
    reattach_moving_average(trainer_of(torch.nn.Linear(1, 1)))


def test_best_weights_are_written_as_the_trainer_writes_them(tmp_path: Path) -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(3.0)
    average = ExponentialMovingAverage(model.named_parameters())
    average._shadows["weight"].fill_(7.0)
    trainer = trainer_of(
        model,
        _moving_average=average,
        _save_model_state=lambda path: torch.save(model.state_dict(), path),
    )
    write_best_weights(trainer, str(tmp_path))
    assert trainer._best_model_filename == str(tmp_path / "best.th")
    assert torch.load(tmp_path / "best.th", weights_only=True)["weight"].item() == 7.0
    assert model.weight.item() == 3.0


def test_a_worker_that_is_not_the_first_writes_nothing(tmp_path: Path) -> None:
    trainer = trainer_of(torch.nn.Linear(1, 1), _primary=False)
    write_best_weights(trainer, str(tmp_path))
    assert trainer._best_model_filename == str(tmp_path / "best.th")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "before, now",
    [("/before/best.th", "here/best.th"), ("best_w1.th", "here/best_w1.th"), (None, None)],
)
def test_best_weights_are_looked_for_in_the_folder(
    before: Optional[str], now: Optional[str]
) -> None:
    trainer = trainer_of(torch.nn.Linear(1, 1), _best_model_filename=before)
    find_best_weights(trainer, "here")
    assert trainer._best_model_filename == now


def test_confidence_checks_end() -> None:
    model = torch.nn.Linear(1, 1)
    checks = ConfidenceChecksCallback("")
    trainer = trainer_of(model, _callbacks=[checks])
    checks.on_start(trainer)
    end_confidence_checks(trainer)
    model(torch.zeros(1))
    assert not checks._verification._module_sequence


def recovered(schedule: Any, num_epochs: int, num_batches: int, after: Tuple[int, int]) -> Any:
    return trainer_of(
        torch.nn.Linear(1, 1),
        _learning_rate_scheduler=schedule,
        _num_epochs=num_epochs,
        data_loader=range(num_batches),
        _num_gradient_accumulation_steps=2,
        _total_batches_completed=0,
        _start_after_epochs_completed=after[0],
        _start_after_batches_in_epoch_completed=after[1],
    )


@pytest.mark.parametrize(
    "num_epochs, num_batches, after, steps, end",
    [
        (4, 10, (3, 2), 17, 20),
        # Twice as many epochs, from the start of one and within it.
        (8, 10, (3, 0), 15, 40),
        (8, 10, (3, 2), 17, 40),
        # Fewer.
        (2, 10, (1, 3), 8, 10),
        # Epochs of 9 steps after three of 5, and of more epochs.
        (4, 18, (3, 0), 15, 24),
        (6, 17, (3, 0), 15, 42),
        # Epochs of 3.
        (4, 6, (2, 0), 10, 16),
    ],
)
def test_a_schedule_ends_with_the_last_epoch(
    num_epochs: int, num_batches: int, after: Tuple[int, int], steps: int, end: int
) -> None:
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0)
    schedule = LinearWithWarmup(optimizer, num_epochs=4, num_steps_per_epoch=5, warmup_steps=2)
    trainer = recovered(schedule, num_epochs, num_batches, after)
    stretch_schedule(trainer, Progress(4, 5, steps))
    rates = []
    for number in range(end - 1, end + 1):
        schedule.step_batch(number)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates[0] > rates[1] == 0.0


def test_a_loader_that_does_not_know_its_length_is_taken_to_be_as_it_was() -> None:
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0)
    schedule = LinearWithWarmup(optimizer, num_epochs=4, num_steps_per_epoch=5, warmup_steps=2)
    trainer = recovered(schedule, 8, 10, (3, 0))
    trainer.data_loader = iter(())
    stretch_schedule(trainer, Progress(4, None, 15))
    assert schedule.total_steps == 40


def test_a_triangle_ends_with_the_last_epoch() -> None:
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0)
    schedule = SlantedTriangular(optimizer, num_epochs=4, num_steps_per_epoch=5)
    stretch_schedule(recovered(schedule, 8, 10, (3, 0)), Progress(4, 5, 15))
    assert schedule.num_epochs == 8


def test_where_no_rate_is_scheduled_there_is_nothing_to_stretch() -> None:
    trainer = recovered(None, 8, 10, (3, 0))
    stretch_schedule(trainer, Progress(4, 5, 15))
    assert trainer._learning_rate_scheduler is None


def write_metrics(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"metrics_epoch_{name}.json").write_text(text, encoding="utf-8")


def test_what_the_last_epoch_measured_is_added(tmp_path: Path) -> None:
    write_metrics(tmp_path, **{"9": '{"loss": 3}', "10": '{"loss": 2, "epoch": 10}'})
    metrics = {"loss": 1}
    add_last_epoch(metrics, str(tmp_path))
    assert metrics == {"loss": 1, "epoch": 10}


def test_other_files_of_the_folder_are_none_of_an_epoch(tmp_path: Path) -> None:
    copies = {"2_old": "", "3 (1)": "", "4.backup": "", "": "", "5x": ""}
    write_metrics(tmp_path, **{"1": '{"loss": 3}', **copies})
    metrics: Dict[str, Any] = {}
    add_last_epoch(metrics, str(tmp_path))
    assert metrics == {"loss": 3}


@pytest.mark.parametrize("text", ['{"loss": 3', "3"])
def test_metrics_that_cannot_be_read_are_left_out(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_metrics(tmp_path, **{"1": text})
    metrics = {"best_epoch": 0}
    add_last_epoch(metrics, str(tmp_path))
    assert metrics == {"best_epoch": 0}
    assert f"{tmp_path / 'metrics_epoch_1.json'}: can't be read" in caplog.text


def test_without_epochs_there_is_nothing_to_add(tmp_path: Path) -> None:
    metrics: Dict[str, Any] = {}
    add_last_epoch(metrics, str(tmp_path))
    add_last_epoch(metrics, str(tmp_path / "removed"))
    assert metrics == {}
