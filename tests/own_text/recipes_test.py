import json
from typing import Any, Dict

import pytest
from allennlp.common.params import evaluate_file

from elmo_scratch.own_text import OwnText, fitted_recipe, recipe_for
from elmo_scratch.own_text.recipes import CONFIGS, LARGER, RECIPES


def fitted(name: str, train_tokens: int, **settings: Any) -> Dict[str, Any]:
    dev_tokens = train_tokens // 20
    text = OwnText(
        ["train.txt"], "dev.txt", train_tokens, dev_tokens, settings.pop("language", None)
    )
    return fitted_recipe(name, text, **settings)


@pytest.mark.parametrize(
    "tokens, name",
    [
        (2000, "own_small"),
        (399_999, "own_small"),
        (400_000, "ptb"),
        (5_000_000, "small"),
        (10**9, "small"),
    ],
)
def test_the_size_of_a_text_chooses(tokens: int, name: str) -> None:
    assert recipe_for(tokens) == name


@pytest.mark.parametrize("name", [*RECIPES, LARGER])
def test_on_a_large_text_a_recipe_is_the_config_of_its_name(name: str) -> None:
    config = fitted(name, 10**9)
    paths = {f"{corpus}_{part}": "" for corpus in ("CORPUS", "PTB") for part in ("TRAIN", "DEV")}
    written = json.loads(evaluate_file(str(CONFIGS / f"{name}.jsonnet"), ext_vars=paths))
    assert config.pop("train_data_path") == config["vocabulary"].pop("data_path") == ["train.txt"]
    assert config.pop("validation_data_path") == "dev.txt"
    assert config["trainer"]["callbacks"].pop() == {"type": "elmo_scratch_forecast"}
    for key in ("train_data_path", "validation_data_path"):
        written.pop(key)
    written["vocabulary"].pop("data_path")
    written["vocabulary"].setdefault("min_count", 3)
    assert config == written


@pytest.mark.parametrize(
    "tokens, streams, dev_streams, epochs",
    [(2000, 1, 1, 20), (10_000, 5, 1, 20), (64_000, 16, 3, 15), (399_000, 16, 8, 10)],
)
def test_a_small_text_gets_fewer_streams_and_more_epochs(
    tokens: int, streams: int, dev_streams: int, epochs: int
) -> None:
    config = fitted("own_small", tokens)
    assert config["data_loader"]["batch_size"] == streams
    assert config["validation_data_loader"]["batch_size"] == dev_streams
    assert config["trainer"]["num_epochs"] == epochs


def test_what_was_asked_for_is_in_the_config() -> None:
    config = fitted("ptb", 10**6, language="hi", num_epochs=3)
    assert config["trainer"]["num_epochs"] == 3
    cut = {"type": "spacy_blank", "language": "hi"}
    assert config["dataset_reader"]["tokenizer"] == config["vocabulary"]["tokenizer"] == cut
