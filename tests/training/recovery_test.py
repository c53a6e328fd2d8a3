from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict

import torch
from allennlp.training.callbacks import ConfidenceChecksCallback
from allennlp.training.learning_rate_schedulers import LinearWithWarmup
from allennlp.training.moving_average import ExponentialMovingAverage

from elmo_scratch.training.recovery import (
    end_confidence_checks,
    reattach_moving_average,
    stretch_schedule,
    write_best_weights,
)


def trainer_of(model: torch.nn.Module, **settings: Any) -> Any:
    standard: Dict[str, Any] = {"_moving_average": None, "_primary": True, "_callbacks": []}
    return SimpleNamespace(_pytorch_model=model, model=model, **{**standard, **settings})


def test_a_moving_average_follows_the_model_again() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(3.0)
    average = ExponentialMovingAverage(model.named_parameters(), decay=0.5)
    average._parameters = [("weight", torch.nn.Parameter(torch.zeros(1, 1)))]
    reattach_moving_average(trainer_of(model, _moving_average=average))
    model.weight.data.fill_(5.0)
    average.apply()
    average.assign_average_value()
    assert model.weight.item() == 4.0
    average.restore()
    assert model.weight.item() == 5.0


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


def test_confidence_checks_end() -> None:
    model = torch.nn.Linear(1, 1)
    checks = ConfidenceChecksCallback("")
    trainer = trainer_of(model, _callbacks=[checks])
    checks.on_start(trainer)
    end_confidence_checks(trainer)
    model(torch.zeros(1))
    assert not checks._verification._module_sequence


def test_a_schedule_ends_with_the_last_epoch() -> None:
    model = torch.nn.Linear(1, 1)
    rates = {}
    for now in (4, 8):
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        schedule = LinearWithWarmup(optimizer, num_epochs=4, num_steps_per_epoch=5, warmup_steps=2)
        trainer = trainer_of(model, _learning_rate_scheduler=schedule, _num_epochs=now)
        stretch_schedule(trainer, 4)
        for number in range(5 * now + 1):
            schedule.step_batch(number)
            rates[now, number] = optimizer.param_groups[0]["lr"]
    assert rates[4, 19] > rates[4, 20] == 0.0
    assert rates[8, 20] > 0.5
    assert rates[8, 39] > rates[8, 40] == 0.0


def test_where_no_rate_is_scheduled_there_is_nothing_to_stretch() -> None:
    trainer = trainer_of(torch.nn.Linear(1, 1), _learning_rate_scheduler=None, _num_epochs=8)
    stretch_schedule(trainer, 4)
    assert trainer._learning_rate_scheduler is None
