"""Keys that nothing reads, in configs and overrides."""

from pathlib import Path
from typing import Any, Dict

import pytest
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader
from allennlp.models import Model

import elmo_scratch  # noqa: F401  (registers what the configs name)
from tests.tiny_training import CONFIGS, config_on_fixtures

BILM = CONFIGS / "bilm" / "fixture.jsonnet"


@pytest.mark.parametrize(
    "place, told",
    [
        ("trainer.num_epoch", "trainer.num_epoch: GradientDescentTrainer .*mean 'num_epochs'"),
        ("trainer.optimizer.lrr", "trainer.optimizer.lrr: .* Did you mean 'lr'"),
        ("trainer.callbacks.0.every", r"callbacks.0.every: ExactResume has no such setting"),
        ("model.dropot", "model.dropot: LanguageModel has no such setting. Did you mean 'dropout'"),
        ("model.bilm.cellsize", "model.bilm.cellsize: BiLm .* Did you mean 'cell_size'"),
        ("dataset_reader.titles", "dataset_reader.titles: SentencesReader .* 'use_title'"),
        ("trainng", "trainng: TrainModel has no such setting. Did you mean 'trainer'"),
    ],
)
def test_a_key_that_nothing_reads_is_refused_before_anything_is_read(place: str, told: str) -> None:
    config = config_on_fixtures(BILM)
    config["train_data_path"] = "/no/such/file"
    part: Any = config
    *parts, key = place.split(".")
    for name in parts:
        part = part[int(name) if isinstance(part, list) else name]
    part[key] = 1
    with pytest.raises(ConfigurationError, match=told):
        TrainModel.from_params(Params(config), serialization_dir="", local_rank=0)


@pytest.mark.parametrize("config_file", sorted(CONFIGS.glob("bilm/*.jsonnet")))
def test_what_configs_hold_is_read(config_file: Path) -> None:
    config = config_on_fixtures(config_file, BILM)
    config["train_data_path"] = "/no/such/file"
    with pytest.raises((ConfigurationError, OSError), match="no such file|no file matches"):
        TrainModel.from_params(Params(config), serialization_dir="", local_rank=0)


def test_an_old_name_that_the_trainer_knows_is_read(tmp_path: Path) -> None:
    config = config_on_fixtures(BILM)
    config["trainer"]["run_sanity_checks"] = False
    with pytest.warns(DeprecationWarning, match="run_sanity_checks"):
        TrainModel.from_params(Params(config), serialization_dir=str(tmp_path), local_rank=0)


def test_classes_of_others_may_take_any_key() -> None:
    class TakesAnything(DatasetReader):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__()
            self.taken: Dict[str, Any] = kwargs

    assert TakesAnything.from_params(Params({"anything": 3})).taken == {"anything": 3}


def test_an_override_of_what_is_not_there_names_what_is(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"trainer": {"callbacks": [1]}}')
    for override, told in {
        "trainr.num_epochs": "the config has no trainr. Did you mean trainer?",
        "trainer.optimizer.lr": "the config has no trainer.optimizer. It has trainer.callbacks",
        "trainer.callbacks.1": "the config has no trainer.callbacks.1. .* trainer.callbacks.0",
    }.items():
        with pytest.raises(ValueError, match=told):
            Params.from_file(config, {override: 1})
    assert Params.from_file(config, {"trainer.patience": 2})["trainer"]["patience"] == 2
    assert Params.from_file(config, {"trainer.callbacks.0": 2})["trainer"]["callbacks"] == [2]


def test_an_unknown_model_is_still_told_by_allennlp() -> None:
    with pytest.raises(ConfigurationError, match="elmo_scratch_blm not in acceptable choices"):
        Model.from_params(Params({"type": "elmo_scratch_blm"}))
