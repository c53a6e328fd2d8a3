"""The config that `docs/pre_training.md` shows against overfitting."""

import json
from pathlib import Path
from typing import Any, Dict

import pytest
from _jsonnet import evaluate_snippet  # type: ignore[import-not-found]
from allennlp.common import Params
from allennlp.data import DataLoader, DatasetReader, Vocabulary
from allennlp.models import Model
from allennlp.training.moving_average import MovingAverage

from tests import PROJECT_ROOT
from tests.pages import blocks_of
from tests.tiny_training import EXT_VARS

HEADING = "Against overfitting"


def shown_config() -> Dict[str, Any]:
    """The one block of its section, on top of the recipe, on the fixtures."""
    page = PROJECT_ROOT / "docs" / "pre_training.md"
    (block,) = (block for block in blocks_of(page) if block.heading == HEADING)
    assert block.language == "jsonnet"
    there = str(PROJECT_ROOT / "pre_training.jsonnet")  # from where its import is looked for
    recipe = f'(import "training_config/bilm/ptb.jsonnet") + {{ {block.text} }}'
    return json.loads(evaluate_snippet(there, recipe, ext_vars=EXT_VARS))


def test_the_config_that_the_page_shows_builds_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    config = shown_config()
    vocab = Vocabulary.from_params(Params(config["vocabulary"]))
    model: Any = Model.from_params(Params(config["model"]), vocab=vocab)
    settings = config["data_loader"]
    settings.update(batch_size=2)  # of a shorter text
    loader: Any = DataLoader.from_params(
        Params(settings),
        reader=DatasetReader.from_params(Params(config["dataset_reader"])),
        data_path=config["train_data_path"],
    )
    bilm = model.bilm
    for stack in (bilm.left_to_right, bilm.right_to_left):
        assert stack.locked_dropout and stack.dropout.p > 0.0
        assert [layer.weight_dropout.p for layer in stack.layers] == [0.5, 0.5]
    assert bilm.word_dropout.p == 0.1
    assert model._locked_dropout and model.dropout.p > 0.0
    assert (model._activation_penalty, model._temporal_penalty) == (2.0, 1.0)
    assert "random_windows" in loader.way_of_reading
    average = MovingAverage.from_params(
        Params(config["trainer"]["moving_average"]), parameters=model.named_parameters()
    )
    assert len(average._shadows) == len(list(model.parameters()))
