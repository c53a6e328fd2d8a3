"""
The configs with ELMo that allennlp-models published run with this package: all that changes is the
type of the embedder. What was trained with AllenNLP's predicts the same.
"""

import json
import shutil
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
import torch
from allennlp.commands.evaluate import evaluate_from_archive
from allennlp.common import Params
from allennlp.common.params import evaluate_file
from allennlp.common.plugins import import_plugins
from allennlp.models import Model
from allennlp.modules.elmo import Elmo as AllenNlpElmo

from elmo_scratch import Elmo, read_official_bilm
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.tiny_training import train

CONFIGS = PROJECT_ROOT / "tests" / "published_configs.jsonnet"
OFFICIAL = FIXTURES_ROOT / "elmo" / "residual"

NAMES = [
    *("ner", "esim", "bcn", "fine_grained_ner", "srl", "decomposable_attention", "bidaf"),
    *("dialog_qa", "constituency_parser"),
]
SLOW = NAMES[2:]

OLD, NEW = "elmo_token_embedder", "elmo_scratch_from_official"

ConfigOf = Callable[[str, str], Params]


@pytest.fixture(scope="module", autouse=True)
def plugins() -> None:
    """All readers and models of allennlp-models."""
    import_plugins()


@pytest.fixture
def config_of(tmp_path: Path) -> ConfigOf:
    """Writes official files, and gives the config of a name, with a type for its embedder."""
    files = {
        variable: str(shutil.copy(OFFICIAL / file, tmp_path))
        for variable, file in (("ELMO_OPTIONS", "options.json"), ("ELMO_WEIGHTS", "weights.hdf5"))
    }

    def config(name: str, elmo_type: str) -> Params:
        if name == "constituency_parser" and shutil.which("gcc") is None:
            pytest.skip("EVALB, which scores trees, is compiled by gcc")
        variables = {**files, "ELMO_TYPE": elmo_type, "TASKS": str(FIXTURES_ROOT / "tasks")}
        configs: Dict[str, Any] = json.loads(evaluate_file(str(CONFIGS), ext_vars=variables))
        assert sorted(configs) == sorted(NAMES)
        return Params(configs[name])

    return config


def elmo_of(model: Model, kind: Any) -> Any:
    (elmo,) = [module for module in model.modules() if isinstance(module, kind)]
    return elmo


def scores(archive: Path, config: Params, **overrides: Any) -> Dict[str, Any]:
    """Of the texts of dev."""
    return evaluate_from_archive(
        str(archive), config["validation_data_path"], cmd_overrides=json.dumps(overrides)
    )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name in SLOW)) for name in NAMES]
)
def test_it_runs_with_the_type_changed(name: str, config_of: ConfigOf, tmp_path: Path) -> None:
    model = train(config_of(name, NEW), tmp_path / "run")
    elmo, files = elmo_of(model, Elmo), [tmp_path / "options.json", tmp_path / "weights.hdf5"]
    assert elmo.mixes[0].gamma.item() != 1.0
    weights = read_official_bilm(*files).state_dict()
    assert all(torch.equal(weights[name], one) for name, one in elmo.bilm.state_dict().items())

    moved = tmp_path / "moved.tar.gz"
    shutil.move(tmp_path / "run" / "model.tar.gz", moved)
    shutil.rmtree(tmp_path / "run")
    for file in files:
        file.unlink()
    assert scores(moved, config_of(name, NEW))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name in NAMES if name != "bcn"])
def test_what_allennlps_elmo_was_trained_for_scores_the_same(
    name: str, config_of: ConfigOf, tmp_path: Path
) -> None:
    config = config_of(name, OLD)
    elmo_of(train(config.duplicate(), tmp_path / "run"), AllenNlpElmo)
    archive = tmp_path / "run" / "model.tar.gz"
    key = "model.text_field_embedder.token_embedders.elmo.type"
    expected = scores(archive, config)
    assert scores(archive, config, **{key: NEW}) == pytest.approx(expected, abs=1e-5)
