"""
The biattentive classifier of allennlp-models takes ELMo by its own parameter `elmo`, at the input
and at the output of its encoder, from official files and from an archive.
"""

import json
import shutil
from pathlib import Path
from typing import Any, Dict, List

import numpy
import pytest
from allennlp.commands.evaluate import evaluate_from_archive
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance
from allennlp.models.archival import Archive, load_archive
from allennlp.modules.elmo import Elmo as AllenNlpElmo
from allennlp.predictors import Predictor
from allennlp_models.classification import BiattentiveClassificationNetwork

from elmo_scratch import Elmo
from tests import FIXTURES_ROOT
from tests.tiny_archives import BILM, WORD_BILM, archive_of
from tests.tiny_elmo import WIDTH, write_files
from tests.tiny_training import train

SST = FIXTURES_ROOT / "tasks" / "sst"
ARCHIVED_WIDTH = 2 * BILM["token_encoder"]["dim"]


def config_of(
    elmo: Dict[str, Any],
    width: int,
    *,
    at_input: bool = True,
    at_output: bool = True,
    indexer: str = "elmo_characters",
) -> Dict[str, Any]:
    """One epoch of a small classifier with five classes."""
    reader = {
        "type": "sst_tokens",
        "tokenizer": "just_spaces",
        "token_indexers": {"tokens": {"type": "single_id"}, "elmo": {"type": indexer}},
    }
    input_dim, output_dim = 3 + at_input * width, 2 * 5 + at_output * width
    config = {
        "dataset_reader": {**reader, "use_subtrees": True},
        "validation_dataset_reader": reader,
        "train_data_path": str(SST / "train.txt"),
        "validation_data_path": str(SST / "dev.txt"),
        "model": {
            "type": "bcn",
            "text_field_embedder": {
                "token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 3}}
            },
            "embedding_dropout": 0.5,
            "pre_encode_feedforward": {
                "input_dim": input_dim,
                "num_layers": 1,
                "hidden_dims": [7],
                "activations": ["relu"],
            },
            "encoder": {"type": "lstm", "input_size": 7, "hidden_size": 2, "bidirectional": True},
            "integrator": {
                "type": "lstm",
                "input_size": 3 * 2 * 2,
                "hidden_size": 5,
                "bidirectional": True,
            },
            "integrator_dropout": 0.1,
            "elmo": {"num_output_representations": at_input + at_output, **elmo},
            "use_input_elmo": at_input,
            "use_integrator_output_elmo": at_output,
            "output_layer": {
                "input_dim": 4 * output_dim,
                "num_layers": 2,
                "output_dims": [11, 5],
                "pool_sizes": 4,
                "dropout": [0.2, 0.0],
            },
        },
        "data_loader": {"batch_size": 29},
        "trainer": {"num_epochs": 1, "optimizer": {"type": "adam", "lr": 0.03}},
    }
    # Each part of its own: AllenNLP takes configs to pieces.
    return json.loads(json.dumps(config))


def probabilities(archive: Archive) -> List[Any]:
    """The classes' for each text of dev, which starts from the states of a first batch."""
    reader, model = archive.validation_dataset_reader, archive.model.eval()
    instances: List[Instance] = list(reader.read(str(SST / "dev.txt")))
    for instance in instances:
        reader.apply_token_indexers(instance)
    if isinstance(model._elmo, Elmo):
        model._elmo.reset_states()
    outputs = model.forward_on_instances(instances)
    return [output["class_probabilities"] for output in outputs]


@pytest.fixture
def sources(tmp_path: Path) -> Dict[str, Any]:
    """What `elmo` is configured by, each in a folder of its own."""
    options, weights = write_files(tmp_path / "official")
    return {
        "official": {"options_file": options, "weight_file": weights},
        "archive": {"pretrained_file": str(archive_of(tmp_path / "archive"))},
    }


@pytest.mark.parametrize("source", ["official", "archive"])
@pytest.mark.parametrize("at_input, at_output", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("indexer", ["elmo_characters", "elmo_scratch_characters"])
def test_it_trains_with_elmo_and_its_archive_stands_alone(
    source: str,
    at_input: bool,
    at_output: bool,
    indexer: str,
    sources: Dict[str, Any],
    tmp_path: Path,
) -> None:
    elmo = {**sources[source], "dropout": 0.1, "do_layer_norm": False}
    width = WIDTH if source == "official" else ARCHIVED_WIDTH
    places: Dict[str, Any] = {"at_input": at_input, "at_output": at_output, "indexer": indexer}
    model = train(Params(config_of(elmo, width, **places)), tmp_path / "run")
    assert isinstance(model._elmo, Elmo)
    gammas = [mix.gamma.item() for mix in model._elmo.mixes]
    assert len(gammas) == at_input + at_output and 1.0 not in gammas
    expected = probabilities(load_archive(tmp_path / "run"))

    moved = tmp_path / "moved.tar.gz"
    shutil.move(tmp_path / "run" / "model.tar.gz", moved)
    for folder in ("run", "official", "archive"):
        shutil.rmtree(tmp_path / folder)
    numpy.testing.assert_array_equal(probabilities(load_archive(moved)), expected)
    assert 0 <= evaluate_from_archive(str(moved), str(SST / "dev.txt"))["accuracy"] <= 1
    predictor = Predictor.from_path(str(moved))
    assert predictor.predict("The ferry was brilliant .")["label"] in "01234"


def test_what_allennlps_elmo_has_learned_loads(
    sources: Dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elmo = {**sources["official"], "dropout": 0.0, "requires_grad": True}
    params = Params(config_of(elmo, WIDTH))
    with monkeypatch.context() as stock:
        stock.delattr(BiattentiveClassificationNetwork, "from_params")
        annotations = BiattentiveClassificationNetwork.__init__.__annotations__
        stock.setitem(annotations, "elmo", AllenNlpElmo)
        assert isinstance(train(params, tmp_path / "run")._elmo, AllenNlpElmo)
        expected = probabilities(load_archive(tmp_path / "run"))
    archive = load_archive(tmp_path / "run")
    assert isinstance(archive.model._elmo, Elmo)
    numpy.testing.assert_allclose(probabilities(archive), expected, rtol=1e-5, atol=1e-6)


def test_a_bilm_of_words_is_an_error(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, bilm=WORD_BILM)
    params = Params(config_of({"pretrained_file": str(archive)}, ARCHIVED_WIDTH))
    message = f"{archive}: expected a biLM that reads characters, .* but it reads words"
    with pytest.raises(ConfigurationError, match=message):
        train(params, tmp_path / "task")


def test_files_and_an_archive_together_are_an_error(
    sources: Dict[str, Any], tmp_path: Path
) -> None:
    params = Params(config_of({**sources["official"], **sources["archive"]}, WIDTH))
    with pytest.raises(ConfigurationError, match="or `pretrained_file` in their place, but got"):
        train(params, tmp_path / "task")
