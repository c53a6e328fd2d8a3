"""A language model whose weights are averaged over its training, as `moving_average` asks for."""

import json
from pathlib import Path
from typing import Any, ClassVar, Dict, List

import pytest
import torch
from allennlp.commands.evaluate import evaluate_from_archive
from allennlp.models import load_archive
from allennlp.training.callbacks import TrainerCallback

from tests.recover_streams_test import config_with
from tests.tiny_training import EXT_VARS
from tests.training.tiny_runs import run

DECAY = 0.8

Weights = Dict[str, torch.Tensor]


@TrainerCallback.register("tests_watch_weights")
class WatchWeights(TrainerCallback):
    """Keeps the weights after each batch of the training, of each epoch."""

    seen: ClassVar[List[List[Weights]]] = []

    def on_start(self, trainer: Any, is_primary: bool = True, **kwargs: Any) -> None:
        self.seen[:] = [[weights_of(trainer.model)]]

    def on_batch(
        self,
        trainer: Any,
        batch_inputs: Any,
        batch_outputs: Any,
        batch_metrics: Any,
        epoch: int,
        batch_number: int,
        is_training: bool,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if is_training:
            self.seen[-1].append(weights_of(trainer.model))

    def on_epoch(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append([])


def weights_of(model: torch.nn.Module) -> Weights:
    return {name: weight.detach().double() for name, weight in model.named_parameters()}


def averaged(epochs: List[List[Weights]]) -> Weights:
    """The average by hand: the younger a training, the faster it forgets."""
    first, *later = [weights for epoch in epochs for weights in epoch]
    average = dict(first)
    for step, weights in enumerate(later, start=1):
        decay = min(DECAY, (1 + step) / (10 + step))
        for name, weight in weights.items():
            average[name] = decay * average[name] + (1 - decay) * weight
    return average


@pytest.mark.parametrize(
    "softmax", ["adaptive", pytest.param("full", marks=pytest.mark.exhaustive)]
)
def test_validation_and_archive_have_the_averaged_weights(
    softmax: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    config = config_with(softmax)
    config["data_loader"].update(unroll_steps=40)
    # In another epoch sentences would follow other ones, and the perplexity would be another.
    config["validation_data_loader"]["shuffle_sentences"] = False
    config["trainer"].update(
        num_epochs=2,
        moving_average={"type": "exponential", "decay": DECAY},
        callbacks=["elmo_scratch_exact_resume", "tests_watch_weights"],
    )
    model = run(config, tmp_path / "run")
    archive = tmp_path / "run" / "model.tar.gz"
    expected = averaged(WatchWeights.seen)
    last = WatchWeights.seen[1][-1]
    for found in (weights_of(model), weights_of(load_archive(archive).model)):
        assert found.keys() == expected.keys()
        for name, weight in found.items():
            assert torch.allclose(weight, expected[name], rtol=1e-4, atol=1e-6), name
            assert not torch.allclose(weight, last[name], rtol=1e-4, atol=1e-6), name
    again = evaluate_from_archive(archive, EXT_VARS["CORPUS_DEV"])
    written = json.loads((tmp_path / "run" / "metrics.json").read_text("utf-8"))
    assert written["best_epoch"] == 1
    assert again["perplexity"] == pytest.approx(written["best_validation_perplexity"], rel=1e-5)
