"""Embedders that read another namespace than their indexers write."""

import logging
from copy import deepcopy
from typing import Any, Dict

import pytest
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

import elmo_scratch  # noqa: F401  (registers what the configs name)


def config_with(indexer: Any, embedder: Dict[str, Any]) -> Dict[str, Any]:
    """A config of a classifier whose texts are missing: reading them is an error of its own."""
    return {
        "dataset_reader": {
            "type": "text_classification_json",
            "token_indexers": {"words": {"type": "single_id"}, "other": indexer},
        },
        "train_data_path": "/no/such/file",
        "model": {
            "type": "basic_classifier",
            "text_field_embedder": {
                "token_embedders": {"words": {"type": "empty"}, "other": embedder}
            },
            "seq2vec_encoder": {"type": "boe", "embedding_dim": 3},
        },
        "data_loader": {"batch_size": 2},
        "trainer": {},
    }


def begin(config: Dict[str, Any]) -> None:
    TrainModel.from_params(Params(deepcopy(config)), serialization_dir="", local_rank=0)


CASED = {"type": "single_id", "namespace": "cased"}
ELMO = {"type": "elmo_scratch", "pretrained_file": "bilm"}
CHARACTERS = {"type": "character_encoding", "embedding": {"embedding_dim": 3}}


@pytest.mark.parametrize(
    "indexer, embedder, told",
    [
        (CASED, ELMO, "'other' reads the namespace 'tokens', but the indexer 'other' .* 'cased'"),
        ("single_id", {**ELMO, "namespace": "cased"}, "'cased', but .* 'tokens'.* `namespace` of"),
    ],
)
def test_an_embedder_of_another_namespace_is_refused_before_anything_is_read(
    indexer: Any, embedder: Dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        begin(config_with(indexer, embedder))


@pytest.mark.parametrize(
    "indexer, embedder",
    [
        (CASED, {**ELMO, "namespace": "cased"}),
        ("single_id", ELMO),
        ({"type": "elmo_characters", "namespace": "letters"}, ELMO),
        ({"type": "elmo_scratch_characters"}, ELMO),
        ({"type": "single_id", "namespace": None}, ELMO),
        ({"type": "characters"}, {**CHARACTERS, "embedding": {"num_embeddings": 9}}),
    ],
)
def test_what_goes_together_or_is_not_known_passes(
    indexer: Any, embedder: Dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(OSError, match="no/such/file"):
        begin(config_with(indexer, embedder))
    assert "namespace" not in caplog.text


@pytest.mark.parametrize(
    "indexer, embedder, told",
    [
        ("characters", CHARACTERS, "writes 'token_characters'. Set `embedding.vocab_namespace`"),
        (CASED, {"type": "embedding", "embedding_dim": 3}, "writes 'cased'. Set `vocab_namespace`"),
    ],
)
def test_of_allennlps_own_tables_a_warning_tells(
    indexer: Any, embedder: Dict[str, Any], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(OSError, match="no/such/file"):
        begin(config_with(indexer, embedder))
    assert told in caplog.text
