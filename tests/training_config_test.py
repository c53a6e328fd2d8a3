import copy
from pathlib import Path

import pytest
from allennlp.commands.train import TrainModel
from allennlp.common.util import prepare_environment

from tests.tiny_training import CONFIGS, config_on_fixtures, fit_encoder, params_on_fixtures

FILES = sorted(CONFIGS.glob("**/*.jsonnet"))

each_config = pytest.mark.parametrize(
    "config_file", FILES, ids=[str(file.relative_to(CONFIGS)) for file in FILES]
)


@each_config
def test_every_config_builds_its_train_loop(
    config_file: Path, bilm_archive: Path, tmp_path: Path
) -> None:
    params = params_on_fixtures(config_file, bilm_archive)
    params.to_file(str(tmp_path / "config.json"))  # the callback `wandb` looks for it
    prepare_environment(params)
    train_loop = TrainModel.from_params(
        params,
        serialization_dir=str(tmp_path),
        local_rank=0,
    )
    assert any(parameter.requires_grad for parameter in train_loop.model.parameters())
    assert (tmp_path / "vocabulary" / "tokens.txt").stat().st_size > 0


@each_config
def test_every_training_can_be_stopped_and_recovered(config_file: Path) -> None:
    trainer = config_on_fixtures(config_file, Path("model.tar.gz"))["trainer"]
    assert trainer["checkpointer"]["type"] == "elmo_scratch_whole"
    kinds = [callback["type"] for callback in trainer["callbacks"]]
    assert {"elmo_scratch_exact_resume", "elmo_scratch_stop_at_nan"} <= set(kinds)


@each_config
def test_every_config_fits_the_bilm_that_is_trained_on_real_news(config_file: Path) -> None:
    archive = Path("model.tar.gz")
    bilm = config_on_fixtures(CONFIGS / "bilm" / "ag_news.jsonnet")["model"]["bilm"]
    config = config_on_fixtures(config_file, archive)
    fitted = copy.deepcopy(config)
    fit_encoder(fitted["model"], 2 * bilm["token_encoder"]["dim"])
    assert config == fitted


def test_there_is_a_config_for_every_mix() -> None:
    mixes = set()
    for file in CONFIGS.glob("ag_news/*.jsonnet"):
        model = config_on_fixtures(file, Path("model.tar.gz"))["model"]
        for embedder in model["text_field_embedder"]["token_embedders"].values():
            mixes.add(embedder.get("mix", {}).get("type"))
    assert {"trainable", "frozen", "function"} <= mixes


def test_a_config_that_asks_for_a_variable_that_nobody_knows_is_an_error(tmp_path: Path) -> None:
    config_file = tmp_path / "new.jsonnet"
    config_file.write_text('{ train_data_path: std.extVar("NEW_TRAIN") }')
    with pytest.raises(ValueError, match=r"new.jsonnet asks for std.extVar\('NEW_TRAIN'\), but"):
        config_on_fixtures(config_file)
