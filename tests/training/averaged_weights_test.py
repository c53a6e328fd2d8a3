from types import SimpleNamespace
from typing import Any

import pytest
import torch
from allennlp.training.moving_average import ExponentialMovingAverage

from elmo_scratch.training.callbacks import averaged_weights


def trainer_of(model: torch.nn.Module, decay: float) -> Any:
    """A trainer whose averages are those of weights of 1, before they became 3."""
    torch.nn.init.constant_(model.weight, 1.0)  # type: ignore[arg-type]
    average = ExponentialMovingAverage(model.named_parameters(), decay=decay)
    torch.nn.init.constant_(model.weight, 3.0)  # type: ignore[arg-type]
    average.apply()
    return SimpleNamespace(_moving_average=average)


def test_they_are_there_while_the_block_runs() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    trainer = trainer_of(model, decay=0.75)
    with averaged_weights(trainer):
        assert model.weight.item() == pytest.approx(1.5)
    assert model.weight.item() == 3.0
    with pytest.raises(KeyboardInterrupt), averaged_weights(trainer):
        raise KeyboardInterrupt
    assert model.weight.item() == 3.0


def test_without_an_average_weights_are_the_models_own() -> None:
    with averaged_weights(SimpleNamespace(_moving_average=None)):  # type: ignore[arg-type]
        pass
