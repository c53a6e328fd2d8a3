"""Keys that nothing reads, in configs and overrides."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any, Dict, List

import pytest
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader
from allennlp.models import Model

import elmo_scratch  # noqa: F401  (registers what the configs name)
from tests.tiny_training import CONFIGS, config_on_fixtures

CLASSIFIER: Dict[str, Any] = {
    "dataset_reader": {"type": "text_classification_json", "tokenizer": {"type": "just_spaces"}},
    "train_data_path": "/no/such/file",
    "model": {
        "type": "basic_classifier",
        "text_field_embedder": {"token_embedders": {"elmo": {"type": "elmo_token_embedder"}}},
        "seq2vec_encoder": {"type": "boe", "embedding_dim": 3},
    },
    "data_loader": {"batch_size": 2},
    "trainer": {},
}

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


OLD_SETTINGS = [
    ("iterator", {"type": "basic", "batch_size": 7}, '"batch_size": 7, "shuffle": true'),
    ("iterator", {"type": "bucket", "batch_size": 7}, '"batch_sampler": {"type": "bucket", "bat'),
    (
        "iterator",
        {"type": "bucket", "sorting_keys": [["a", "num_tokens"], ["a", "b"], ["c", "d"]]},
        '"sorting_keys": ["a", "c"]',
    ),
    ("validation_iterator", {"batch_size": 7}, 'validation_data_loader: {"batch_size": 7}'),
    ("trainer.shuffle", False, "data_loader.shuffle: false"),
    ("trainer.num_serialized_models_to_keep", 3, 'checkpointer: {"keep_most_recent_by_count": 3}'),
    ("trainer.num_serialized_models_to_keep", -1, '"keep_most_recent_by_count": null'),
    ("trainer.model_save_interval", 60, "checkpointer: {save_every_num_seconds: 60}"),
    ("trainer.histogram_interval", 9, '[{"type": "tensorboard", "distribution_interval": 9}]'),
    ("trainer.should_log_parameter_statistics", False, '"should_log_parameter_statistics": false'),
    ("trainer.random_seed", 1, "at the top of the config"),
    ("trainer.cuda_device", [0, 1], "distributed: {cuda_devices: [0, 1]}"),
    ("dataset_reader.lazy", True, "data_loader.max_instances_in_memory"),
    ("dataset_reader.lazy", False, "Leave it out"),
    ("dataset_reader.tokenizer", {"word_splitter": "simple"}, 'tokenizer: {"type": "spacy"}'),
    (
        "dataset_reader.tokenizer",
        {"type": "word", "word_splitter": {"type": "just_spaces"}},
        'tokenizer: {"type": "just_spaces"}',
    ),
    ("trainer.type", "callback", "one list, `trainer.callbacks`"),
    ("trainer.type", "default", "Leave it out"),
    ("vocabulary", {"type": "default"}, "Leave it out"),
    ("data_loader.sorting_keys", [["a", "num_tokens"]], 'batch_sampler: {type: "bucket", batch_'),
    ("vocabulary.directory_path", "v", '{"type": "from_files", "directory": "v"}'),
    ("model.text_field_embedder.elmo", {"type": "empty"}, "`token_embedders: {elmo: …}`"),
    ("model.text_field_embedder.allow_unmatched_keys", True, '{type: "empty"}'),
    ("model.text_field_embedder.token_embedders.elmo.namespace_to_cache", "x", "Leave it out"),
    ("model.initializer", [["a", {"type": "normal"}]], "`initializer: {regexes: […]}`"),
    ("model.regularizer", [["a", {"type": "l2"}]], "`regularizer: {regexes: […]}`"),
]
"""Settings of AllenNLP 0.9, and what the error says of each."""


@pytest.mark.parametrize("place, value, told", OLD_SETTINGS)
def test_a_setting_of_an_older_allennlp_says_what_to_write(
    place: str, value: Any, told: str
) -> None:
    config = deepcopy(CLASSIFIER)
    *parts, key = place.split(".")
    part = config
    for name in parts:
        part = part.setdefault(name, {})
    part[key] = value
    begin = rf"^{re.escape(place)}(\.type|\.word_splitter)? is written for an older AllenNLP"
    with pytest.raises(ConfigurationError, match=rf"{begin}\. .*{re.escape(told)}"):
        TrainModel.from_params(Params(config), serialization_dir="", local_rank=0)


def test_the_other_old_settings_of_a_config_are_named() -> None:
    config = {**deepcopy(CLASSIFIER), "iterator": {}}
    config["trainer"]["summary_interval"] = 7
    with pytest.raises(ConfigurationError, match="^iterator .* Others here: trainer.summary_int"):
        TrainModel.from_params(Params(config), serialization_dir="", local_rank=0)


def test_a_class_of_ones_own_reads_old_settings() -> None:
    class Old(DatasetReader):
        def __init__(self, lazy: bool, cuda_device: List[int], initializer: List[str]) -> None:
            super().__init__()
            self.taken = (lazy, cuda_device, initializer)

    settings = {"lazy": True, "cuda_device": [0], "initializer": ["a"]}
    assert Old.from_params(Params(settings)).taken == (True, [0], ["a"])


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
