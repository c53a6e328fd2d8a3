"""Archives of AllenNLP's own `elmo_token_embedder`, read by the embedder that takes its place."""

import copy
import json
from pathlib import Path
from typing import Any, Dict, List

import numpy
import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.testing import ModelTestCase
from allennlp.models.archival import Archive, load_archive

from elmo_scratch import OfficialEmbedder
from elmo_scratch.data.readers import ag_news_rows
from tests.tiny_elmo import OPTIONS, OfficialFiles, write_files
from tests.tiny_training import EXT_VARS, train

EMBEDDER = "model.text_field_embedder.token_embedders.elmo"
OVERRIDES = {f"{EMBEDDER}.type": "elmo_scratch_from_official"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> OfficialFiles:
    return write_files(tmp_path_factory.mktemp("official"), OPTIONS, None)


@pytest.fixture(scope="module")
def params(files: OfficialFiles, tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Any]:
    """A classifier of AllenNLP's that trains its biLM on."""
    data = tmp_path_factory.mktemp("news") / "rows.jsonl"
    with open(data, "w", encoding="utf-8") as file:
        for row in list(ag_news_rows(EXT_VARS["NEWS_TRAIN"]))[:23]:
            file.write(json.dumps({"text": row.description, "label": row.label}) + "\n")
    embedder = {
        "type": "elmo_token_embedder",
        "options_file": files.options,
        "weight_file": files.weights,
        "requires_grad": True,
        "projection_dim": 5,
    }
    words = {"type": "embedding", "embedding_dim": 3}
    return {
        "dataset_reader": {
            "type": "text_classification_json",
            "tokenizer": "spacy_blank",
            # AllenNLP's classifier does not do without ids of words.
            "token_indexers": {
                "elmo": {"type": "elmo_characters"},
                "tokens": {"type": "single_id"},
            },
        },
        "train_data_path": str(data),
        "validation_data_path": str(data),
        "model": {
            "type": "basic_classifier",
            "text_field_embedder": {"token_embedders": {"elmo": embedder, "tokens": words}},
            "seq2vec_encoder": {"type": "bag_of_embeddings", "embedding_dim": 8},
        },
        "data_loader": {"batch_size": 7},
        "trainer": {"num_epochs": 2, "optimizer": {"type": "adam", "lr": 0.03}},
    }


@pytest.fixture(scope="module")
def archive(params: Dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive") / "run"
    train(Params(copy.deepcopy(params)), folder)
    return folder / "model.tar.gz"


def probabilities(archive: Archive) -> List[Any]:
    """Of three batches, so that states are carried."""
    archive.model.eval()
    reader = archive.validation_dataset_reader
    instances = list(reader.read(archive.config["train_data_path"]))[:18]
    for instance in instances:
        reader.apply_token_indexers(instance)
    groups = (instances[start : start + 6] for start in range(0, 18, 6))
    return [one["probs"] for group in groups for one in archive.model.forward_on_instances(group)]


def test_it_gives_the_same_predictions(archive: Path) -> None:
    ours = load_archive(archive, overrides=OVERRIDES)
    assert any(isinstance(module, OfficialEmbedder) for module in ours.model.modules())
    expected = probabilities(load_archive(archive))
    numpy.testing.assert_allclose(probabilities(ours), expected, rtol=1e-5, atol=1e-6)


def test_without_the_official_files_it_names_them(archive: Path) -> None:
    overrides = {**OVERRIDES, f"{EMBEDDER}.options_file": "nowhere/options.json"}
    with pytest.raises(ConfigurationError, match="nowhere/options.json"):
        load_archive(archive, overrides=overrides)


@pytest.mark.parametrize("kind", ["elmo_token_embedder", "elmo_scratch_from_official"])
def test_allennlps_own_test_of_a_model_passes(
    kind: str, params: Dict[str, Any], tmp_path: Path
) -> None:
    params = copy.deepcopy(params)
    params["model"]["text_field_embedder"]["token_embedders"]["elmo"]["type"] = kind
    config = tmp_path / "config.json"
    config.write_text(json.dumps(params), encoding="utf-8")
    case = ModelTestCase()
    case.setup_method()
    try:
        case.set_up_model(config, params["train_data_path"])
        # It resets the states of what it knows to carry some.
        case.ensure_model_can_train_save_and_load(config, tolerance=1e-5)
    finally:
        case.teardown_method()
