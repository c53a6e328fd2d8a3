"""The sweep files of training_config/sweeps/, for Optuna and for Weights & Biases."""

import json
import os
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List

import optuna
import pytest
import yaml
from allennlp.common import Params
from allennlp.common.params import with_overrides
from allennlp.data import Vocabulary
from allennlp.models import Model

from elmo_scratch import LayerMix
from elmo_scratch.search import Sweep, read_sweep
from tests.tiny_training import BILM_WIDTH, CONFIGS, config_on_fixtures, fit_encoder

FILE = CONFIGS / "sweeps" / "ag_news.yaml"
MIX = "model.text_field_embedder.token_embedders.elmo.mix"


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    return read_sweep(FILE)


def draws(sweep: Sweep, times: int) -> List[Dict[str, Any]]:
    """What a search might try."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = []
    for _ in range(times):
        trial = study.ask()
        drawn.append({name: one.draw(name, trial) for name, one in sweep.parameters.items()})
        study.tell(trial, 0.0)
    return drawn


def test_it_covers_the_mix_the_learning_rate_and_the_hidden_size(sweep: Sweep) -> None:
    drawn = draws(sweep, 50)
    assert {one[f"{MIX}.type"] for one in drawn} == {
        *("trainable", "frozen", "function", "gate", "top", "mean")
    }
    assert len({one["trainer.optimizer.lr"] for one in drawn}) == 50
    assert len({one["model.seq2vec_encoder.num_filters"] for one in drawn}) > 2


@pytest.mark.parametrize("config", ["elmo_trainable", "elmo_wandb"])
def test_whatever_it_draws_is_a_model(config: str, sweep: Sweep, bilm_archive: Path) -> None:
    file = CONFIGS / "ag_news" / f"{config}.jsonnet"
    plain = config_on_fixtures(file, bilm_archive)
    fit_encoder(plain["model"], BILM_WIDTH)
    vocabulary = Vocabulary({name: {"a": 1, "b": 1} for name in ("tokens", "elmo", "labels")})
    choices = [sweep.parameters[f"{MIX}.{setting}"].grid() for setting in ("type", "do_layer_norm")]
    kinds = list(product(*(map(json.loads, choice or ()) for choice in choices)))
    assert len(kinds) == 12
    for overrides, (kind, has_norm) in zip(draws(sweep, len(kinds)), kinds, strict=True):
        overrides.update({f"{MIX}.type": kind, f"{MIX}.do_layer_norm": has_norm})
        config_of_trial = with_overrides(plain, overrides)
        assert config_of_trial["trainer"]["optimizer"]["lr"] == overrides["trainer.optimizer.lr"]
        model = Model.from_params(Params(config_of_trial["model"]), vocab=vocabulary)
        mix = model.text_field_embedder.token_embedder_elmo.mix
        assert type(mix) is LayerMix.by_name(kind)
        assert mix.do_layer_norm == has_norm
        size = 3 * overrides["model.seq2vec_encoder.num_filters"]
        assert model.seq2vec_encoder.get_output_dim() == size


def test_an_agent_of_weights_and_biases_trains_what_it_draws(
    sweep: Sweep, wandb: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the agent starts is written down by a program that is called like AllenNLP's.
    allennlp = tmp_path / "bin" / "allennlp"
    allennlp.parent.mkdir()
    allennlp.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/words\n', encoding="utf-8")
    allennlp.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(allennlp.parent), os.environ["PATH"]]))
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    for name in ("RUN_ID", "SWEEP_PARAM_PATH"):  # the agent sets them
        monkeypatch.setenv(f"WANDB_{name}", "")
    monkeypatch.setenv("WANDB_SWEEP_ID", "sweep")

    described = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    (values,) = draws(sweep, 1)
    agent = wandb.wandb_agent.Agent(api=None, queue=None)
    agent._sweep_command = described["command"]
    arguments = {name: {"value": value} for name, value in values.items()}
    agent._command_run({"run_id": "x7", "program": described["program"], "args": arguments})
    assert agent._run_processes["x7"].wait() == 0
    words = (tmp_path / "words").read_text(encoding="utf-8").splitlines()
    assert words[:-1] == [
        *("train", "training_config/ag_news/elmo_wandb.jsonnet"),
        *("-s", "runs/ag_news/sweep/x7", "--overrides"),
    ]
    assert json.loads(words[-1]) == values
