import copy
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Set

import pytest
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.params import evaluate_file
from allennlp.common.util import prepare_environment
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.training import GradientDescentTrainer

from tests.tiny_training import (
    CONFIGS,
    EXT_VARS,
    config_on_fixtures,
    fit_encoder,
    params_on_fixtures,
)

FILES = sorted(CONFIGS.glob("**/*.jsonnet"))
OF_NEWS_AND_BILMS = [file for file in FILES if "elmo.libsonnet" not in file.read_text("utf-8")]
"""Of those of tasks `task_configs_test.py` tells more."""

Configs = Dict[str, Dict[str, Any]]


@pytest.mark.parametrize(
    "config_file", OF_NEWS_AND_BILMS, ids=lambda file: str(file.relative_to(CONFIGS))
)
def test_every_config_builds_its_train_loop(
    config_file: Path, bilm_archive: Path, tmp_path: Path
) -> None:
    params = params_on_fixtures(config_file, bilm_archive)
    if config_file.name == "tiny.jsonnet":
        # The fixtures have fewer words than its softmax has frequent ones.
        params["model"]["softmax"]["cutoffs"] = [500]
    params.to_file(str(tmp_path / "config.json"))  # the callback `wandb` looks for it
    prepare_environment(params)
    train_loop = TrainModel.from_params(
        params,
        serialization_dir=str(tmp_path),
        local_rank=0,
    )
    assert any(parameter.requires_grad for parameter in train_loop.model.parameters())
    namespace = "elmo" if config_file.name == "elmo_pooled.jsonnet" else "tokens"
    assert (tmp_path / "vocabulary" / f"{namespace}.txt").stat().st_size > 0


def test_the_output_folder_of_a_training_is_fine_tuned_as_its_archive_is(
    bilm_archive: Path, tmp_path: Path
) -> None:
    folder = bilm_archive.parent
    before = set(folder.iterdir())
    params = params_on_fixtures(CONFIGS / "bilm" / "fine_tune.jsonnet", folder)
    TrainModel.from_params(params, serialization_dir=str(tmp_path), local_rank=0)
    words = [run / "vocabulary" / "tokens.txt" for run in (folder, tmp_path)]
    assert words[0].read_bytes() == words[1].read_bytes()
    assert set(folder.iterdir()) == before


@lru_cache(maxsize=None)
def by_its_head(config_file: Path) -> str:
    """The JSON that a config makes of the variables that its head names."""
    head = config_file.read_text(encoding="utf-8").split("\n{", 1)[0]
    head = "\n".join(line for line in head.splitlines() if line.startswith("//"))
    told = set(re.findall(r"\b([A-Z]+(?:_[A-Z]+)+)=", head))
    variables = {**EXT_VARS, "BILM_ARCHIVE": "model.tar.gz"}
    known = {name: variables[name] for name in named_in(config_file) & told}
    return evaluate_file(str(config_file), ext_vars=known)


@pytest.fixture(scope="module")
def configs() -> Configs:
    """All configs, over an archive that is not there."""
    return {str(file.relative_to(CONFIGS)): json.loads(by_its_head(file)) for file in FILES}


def callbacks_of(config: Dict[str, Any]) -> List[str]:
    return [callback["type"] for callback in config["trainer"]["callbacks"]]


def test_every_training_can_be_stopped_and_recovered(configs: Configs) -> None:
    for name, config in configs.items():
        assert config["trainer"]["checkpointer"]["type"] == "elmo_scratch_whole", name
        kinds = set(callbacks_of(config))
        assert {"elmo_scratch_exact_resume", "elmo_scratch_stop_at_nan"} <= kinds, name


def test_the_heads_of_configs_say_what_they_need() -> None:
    for file in FILES:
        assert json.loads(by_its_head(file)), file


def named_in(config_file: Path) -> Set[str]:
    """The variables that stand in a config and in those that it imports."""
    text = config_file.read_text(encoding="utf-8")
    imported = [config_file.parent / name for name in re.findall(r'import "([^"]+)"', text)]
    return set(re.findall(r'std\.extVar\("(\w+)"\)', text)).union(*map(named_in, imported))


def test_no_config_counts_words_of_dev(configs: Configs) -> None:
    for name, config in configs.items():
        if config.get("vocabulary", {}).get("type") != "from_files":
            assert config["datasets_for_vocab_creation"] in ([], ["train"]), name


def test_every_config_fits_the_bilm_that_is_trained_on_real_news(configs: Configs) -> None:
    bilm = configs["bilm/ag_news.jsonnet"]["model"]["bilm"]
    for name in [str(file.relative_to(CONFIGS)) for file in OF_NEWS_AND_BILMS]:
        fitted = copy.deepcopy(configs[name])
        fit_encoder(fitted["model"], 2 * bilm["token_encoder"]["dim"])
        assert configs[name] == fitted, name


@pytest.mark.parametrize("name", ["elmo_fine_tuned", "elmo_fine_tuned_titles"])
def test_a_bilm_that_is_trained_on_takes_the_smallest_steps_near_the_words(
    name: str, bilm_archive: Path, tmp_path: Path
) -> None:
    params = params_on_fixtures(CONFIGS / "ag_news" / f"{name}.jsonnet", bilm_archive)
    train_loop = TrainModel.from_params(params, serialization_dir=str(tmp_path), local_rank=0)
    trainer = train_loop.trainer
    assert isinstance(trainer, GradientDescentTrainer)
    rates = {
        id(parameter): group["initial_lr"]
        for group in trainer.optimizer.param_groups
        for parameter in group["params"]
    }
    expected = {
        "bilm.token_encoder.": 6.4e-5,
        ".layers.0.": 1.6e-4,
        ".layers.1.": 4e-4,
        "": 1e-3,
    }
    seen = set()
    for parameter_name, parameter in train_loop.model.named_parameters():
        place = next(part for part in expected if part in parameter_name)
        assert rates[id(parameter)] == pytest.approx(expected[place]), parameter_name
        assert parameter.requires_grad
        seen.add(place)
    assert seen == set(expected)


def test_a_pooled_bilm_is_trained_from_its_top_downwards(
    bilm_archive: Path, tmp_path: Path
) -> None:
    params = params_on_fixtures(CONFIGS / "ag_news" / "elmo_pooled.jsonnet", bilm_archive)
    train_loop = TrainModel.from_params(params, serialization_dir=str(tmp_path), local_rank=0)
    trainer = train_loop.trainer
    assert isinstance(trainer, GradientDescentTrainer)
    schedule = trainer._learning_rate_scheduler
    assert schedule is not None
    parts = ["bilm.token_encoder.", ".layers.0.", ".layers.1.", ""]
    for num_trained in (1, 2, 3, 4):
        for name, parameter in train_loop.model.named_parameters():
            place = next(place for place, part in enumerate(parts) if part in name)
            assert parameter.requires_grad == (place >= 4 - num_trained), (name, num_trained)
        schedule.step()
    rates = [group["lr"] for group in trainer.optimizer.param_groups if group["params"]]
    assert rates == sorted(rates) and len(set(rates)) == 4


@pytest.mark.parametrize("name", ["small", "original"])
def test_the_recipes_of_the_released_models_draw_weights_as_the_original_does(name: str) -> None:
    config = Params.from_file(CONFIGS / "bilm" / f"{name}.jsonnet", "", EXT_VARS)["model"]
    config["bilm"]["cell_size"] = 5
    config["softmax"]["num_samples"] = 1
    model = Model.from_params(config, vocab=Vocabulary({"tokens": {"a": 3, "b": 3}}))
    encoder = model.requires_grad_(False).bilm.token_encoder
    for convolution in encoder.convolution.convolutions:
        assert convolution.weight.abs().max() <= 0.05
        assert convolution.weight.std() == pytest.approx(0.05 / 3**0.5, rel=0.1)
    affine = [part for highway in encoder.highways for part in (highway.transform, highway.carry)]
    for part in [*affine, encoder.projection]:
        assert part.weight.std() == pytest.approx(2048**-0.5, rel=0.02)
        assert part.weight.abs().max() > 4 * 2048**-0.5  # drawn by a normal distribution
    assert all((highway.carry.bias == -2.0).all() for highway in encoder.highways)
    assert 0.9 < encoder.convolution.embedding.weight.abs().max() <= 1.0
    assert model.softmax.weight.std() == pytest.approx(model.bilm.dim**-0.5, rel=0.1)


def test_there_is_a_config_for_each_mix_of_the_paper() -> None:
    mixes = set()
    for file in CONFIGS.glob("ag_news/*.jsonnet"):
        model = config_on_fixtures(file, Path("model.tar.gz"))["model"]
        for embedder in model["text_field_embedder"]["token_embedders"].values():
            mixes.add(embedder.get("mix", {}).get("type"))
    assert {"trainable", "frozen", "function"} <= mixes


def test_what_mixes_layers_tells_their_weights_once(configs: Configs) -> None:
    for name, config in configs.items():
        mixes = '"mix": ' in json.dumps(config["model"])
        assert callbacks_of(config).count("elmo_scratch_mix_shares") == mixes, name


def test_a_config_that_asks_for_a_variable_that_nobody_knows_is_an_error(tmp_path: Path) -> None:
    config_file = tmp_path / "new.jsonnet"
    config_file.write_text('{ train_data_path: std.extVar("NEW_TRAIN") }')
    with pytest.raises(ValueError, match=r"new.jsonnet asks for std.extVar\('NEW_TRAIN'\), but"):
        config_on_fixtures(config_file)
