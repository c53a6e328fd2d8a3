from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.models import LanguageModel
from elmo_scratch.training import StopAtNan
from tests.metrics.workers import run_in_two_workers
from tests.training.tiny_runs import run, tiny_config

CHECKPOINTS = {"type": "elmo_scratch_whole", "save_every_num_batches": 2}


def config_of(**trainer: Any) -> Dict[str, Any]:
    callbacks = ["elmo_scratch_stop_at_nan"]
    return tiny_config(callbacks=callbacks, checkpointer=CHECKPOINTS, **trainer)


def spoil(
    monkeypatch: pytest.MonkeyPatch, batch: int, how: Callable[[LanguageModel, Any], Any]
) -> None:
    """Does something to the outputs of the training batch of this number, from 1 on."""
    forward, seen = LanguageModel.forward, 0

    def spoilt(self: LanguageModel, *args: Any, **kwargs: Any) -> Any:
        nonlocal seen
        outputs = forward(self, *args, **kwargs)
        seen += self.training
        return how(self, outputs) if self.training and seen == batch else outputs

    monkeypatch.setattr(LanguageModel, "forward", spoilt)


def written(folder: Path) -> List[str]:
    return sorted(file.name for file in folder.glob("*_state_*.th"))


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_a_loss_that_is_no_number_stops_the_training(
    number: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spoil(monkeypatch, 9, lambda _, outputs: {"loss": outputs["loss"] * float(number)})
    with pytest.raises(
        ConfigurationError,
        match=f"the loss is {number} in epoch 1, batch 4 .step 9.*checkpoint is .*/"
        r"model_state_e1_b2\.th; nothing was written after it.*learning rate.*`grad_norm`",
    ):
        run(config_of(), tmp_path / "run")
    assert written(tmp_path / "run")[0] == "model_state_e1_b0.th"
    assert written(tmp_path / "run")[1] == "model_state_e1_b2.th"
    assert len(written(tmp_path / "run")) == 4


@pytest.mark.parametrize("number", ["nan", "inf"])
@pytest.mark.parametrize("grad_norm", [False, True, 1.0])
def test_a_gradient_that_is_no_number_stops_before_it_gets_into_the_weights(
    grad_norm: Any, number: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept: List[LanguageModel] = []

    def spoil_gradient(model: LanguageModel, outputs: Any) -> Any:
        kept.append(model)
        # Of one weight only; all others have sound gradients.
        model.get_parameter("softmax.weight").register_hook(spoil_one_number)
        return outputs

    def spoil_one_number(gradient: torch.Tensor) -> torch.Tensor:
        spoilt = gradient.to_dense().clone()
        spoilt[3, 2] = float(number)
        return spoilt

    # Clipping spreads what is no number, and turns what is infinite into that.
    culprit = ".*" if type(grad_norm) is float and number == "nan" else "softmax.weight"
    spoil(monkeypatch, 2, spoil_gradient)
    with pytest.raises(
        ConfigurationError,
        match=f"the gradient of {culprit} is not finite in epoch 0, batch 2 .step 2.* checkpoint "
        "does not exist: none was written yet",
    ):
        run(config_of(grad_norm=grad_norm), tmp_path / "run")
    assert all(bool(weights.isfinite().all()) for weights in kept[0].parameters())
    assert not written(tmp_path / "run")


def test_a_gradient_that_is_no_number_is_found_behind_clipping(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def spoil_gradient(model: LanguageModel, outputs: Any) -> Any:
        weight = model.get_parameter("softmax.weight")
        weight.register_hook(lambda gradient: gradient * float("nan"))
        return outputs

    spoil(monkeypatch, 2, spoil_gradient)
    with pytest.raises(ConfigurationError, match="the gradient of softmax.weight is not finite"):
        run(config_of(grad_norm=False, grad_clipping=0.5), tmp_path / "run")


def test_weights_that_are_no_numbers_are_not_saved(tmp_path: Path) -> None:
    """Of finite gradients: the step itself makes weights that are infinite."""
    optimizer = {"type": "sgd", "lr": 1e38, "weight_decay": 1e3}
    config = tiny_config(
        callbacks=["elmo_scratch_stop_at_nan"],
        optimizer=optimizer,
        grad_norm=False,
        moving_average=None,
        learning_rate_scheduler=None,
        checkpointer={"type": "elmo_scratch_whole", "save_every_num_batches": 1},
    )
    with pytest.raises(ConfigurationError, match="the weights of .* is not finite"):
        run(config, tmp_path / "run")
    assert not written(tmp_path / "run")


def check_worker(rank: int) -> None:
    callback = StopAtNan("unused")
    trainer: Any = SimpleNamespace(
        _checkpointer=None,
        _batches_in_epoch_completed=3,
        _total_batches_completed=8,
        _epochs_completed=1,
    )
    callback.trainer = trainer
    model = torch.nn.Identity().train()
    callback._check_loss(model, (), {"loss": torch.tensor(1.0 + rank)})
    told = "the loss of another worker is not finite" if rank else "the loss is nan"
    with pytest.raises(ConfigurationError, match=f"{told} in epoch 1, batch 4"):
        callback._check_loss(model, (), {"loss": torch.tensor(1.0 if rank else float("nan"))})


def test_all_workers_stop_where_one_diverges(tmp_path: Path) -> None:
    run_in_two_workers(check_worker, tmp_path)


def test_a_sound_training_is_left_alone(tmp_path: Path) -> None:
    model = run(config_of(), tmp_path / "run")
    assert not model._forward_hooks
    twin = run(tiny_config(callbacks=["null"]), tmp_path / "twin")
    for name, weights in model.state_dict().items():
        assert torch.equal(weights, twin.state_dict()[name])
