"""Trainings with AllenNLP's model `from_archive`, and with parts of archived models."""

import json
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any, Dict

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import BasicClassifier, Model, load_archive
from allennlp.modules.token_embedders import Embedding
from allennlp.predictors import Predictor

from elmo_scratch.embedders import BiLmEmbedder
from elmo_scratch.interop import read_bilm_archive
from elmo_scratch.predictors import ScorePredictor
from elmo_scratch_compat.parents import followed, kept_model
from tests.tiny_archives import WORD_BILM, archive_of, config_of, write_lines
from tests.tiny_training import train

CLASSES = ["money", "water"]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a language model of words."""
    return archive_of(tmp_path_factory.mktemp("words"), bilm=WORD_BILM)


def trained_on(parent: Path, folder: Path, **settings: Any) -> Path:
    """The folder of a training that goes on with the model of an archive."""
    folder.mkdir()
    config = config_of(folder, bilm=WORD_BILM, **settings)
    config["model"] = {"type": "from_archive", "archive_file": str(parent)}
    train(Params(config), folder / "run")
    return folder / "run"


def classifier_config(folder: Path, embedder: Dict[str, Any]) -> Dict[str, Any]:
    """A classifier of texts in other words, and in another order, than the language model's."""
    texts = [
        {"text": "rose rates naïve", "label": "money"},
        {"text": "bank zzyzx", "label": "water"},
    ]
    lines = [json.dumps(text) for text in texts]
    return {
        "dataset_reader": {
            "type": "text_classification_json",
            "tokenizer": "whitespace",
            "token_indexers": {"tokens": {"type": "single_id"}},
        },
        "train_data_path": str(write_lines(folder / "texts.jsonl", lines)),
        "model": {
            "type": "basic_classifier",
            "text_field_embedder": embedder,
            "seq2vec_encoder": {"type": "boe", "embedding_dim": 16},
        },
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 1, "optimizer": {"type": "adam", "lr": 0.05}},
    }


@pytest.fixture(scope="module")
def classifier(words: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a classifier over that language model."""
    folder = tmp_path_factory.mktemp("classifier")
    embedder = {"type": "elmo_scratch", "pretrained_file": str(words)}
    config = classifier_config(folder, {"token_embedders": {"tokens": embedder}})
    train(Params(config), folder / "run")
    return folder / "run" / "model.tar.gz"


def vectors(model: Model, vocab: Vocabulary) -> torch.Tensor:
    """Of three words by the embedder in a model."""
    (embedder,) = (one for one in model.modules() if isinstance(one, BiLmEmbedder))
    ids = [vocab.get_token_index(word) for word in ("river", "bank", "rates")]
    return embedder.eval()(torch.tensor([ids]))


def test_a_training_from_an_archive_needs_it_no_more(words: Path, tmp_path: Path) -> None:
    parent = Path(shutil.copy(words, tmp_path / "parent.tar.gz"))
    folder = trained_on(parent, tmp_path / "first")
    again = trained_on(folder / "model.tar.gz", tmp_path / "second")
    parent.unlink()
    (folder / "model.tar.gz").unlink()
    own = kept_model(again)
    assert own is not None and own["type"] == "elmo_scratch_bilm"
    for source in (again / "model.tar.gz", again):
        archive = load_archive(source)
        assert archive.config["model"]["type"] == "elmo_scratch_bilm"
        assert isinstance(Predictor.from_archive(archive), ScorePredictor)
        read = read_bilm_archive(source)
        assert torch.equal(
            read.bilm.state_dict()["token_encoder.embedding.weight"],
            archive.model.state_dict()["bilm.token_encoder.embedding.weight"],
        )
        # It was trained on.
        before = read_bilm_archive(words).bilm.token_encoder.state_dict()["embedding.weight"]
        after = read.bilm.token_encoder.state_dict()["embedding.weight"]
        assert before.shape == after.shape and not torch.equal(before, after)


def test_a_language_model_learns_no_new_words(words: Path, tmp_path: Path) -> None:
    told = "knows 12 words, but .* has 13.*`elmo_scratch_bilm_from_archive`.*fine_tune.jsonnet"
    with pytest.raises(ConfigurationError, match=told):
        trained_on(words, tmp_path / "more", lines=["the unheard river rose"] * 2)


def test_a_classifier_from_an_archive_holds_what_its_bilm_needs(
    classifier: Path, tmp_path: Path
) -> None:
    parent = Path(shutil.copy(classifier, tmp_path / "parent.tar.gz"))
    config = classifier_config(tmp_path, {})
    config["model"] = {"type": "from_archive", "archive_file": str(parent)}
    train(Params(config), tmp_path / "run")
    parent.unlink()
    model = load_archive(tmp_path / "run" / "model.tar.gz").model
    assert isinstance(model, BasicClassifier)
    assert model.vocab.get_token_to_index_vocabulary("labels").keys() == set(CLASSES)


def test_an_embedder_of_an_archive_joins_the_vocabulary_in_use(
    classifier: Path, tmp_path: Path
) -> None:
    part = {"archive_file": str(classifier), "module_path": "_text_field_embedder"}
    vocab = Vocabulary(tokens_to_add={"tokens": ["zzyzx", "river", "bank"], "labels": CLASSES})
    config = classifier_config(tmp_path, {"_pretrained": part})["model"]
    model = Model.from_params(Params(deepcopy(config)), vocab=vocab)
    archived = load_archive(classifier).model
    assert torch.equal(vectors(model, vocab), vectors(archived, archived.vocab))


def test_a_table_of_an_archive_is_not_read_by_other_numbers(tmp_path: Path) -> None:
    embedder = {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 16}}}
    train(Params(classifier_config(tmp_path, embedder)), tmp_path / "run")
    archive = tmp_path / "run" / "model.tar.gz"
    part = {"archive_file": str(archive), "module_path": "_text_field_embedder"}
    config = classifier_config(tmp_path, {"_pretrained": part})["model"]
    labels = {"labels": CLASSES}
    other = Vocabulary(tokens_to_add={"tokens": ["zzyzx", "bank"], **labels})
    with pytest.raises(ConfigurationError, match='numbers words otherwise: .* type: "extend"'):
        Model.from_params(Params(deepcopy(config)), vocab=other)
    extended = Vocabulary.from_files(str(tmp_path / "run" / "vocabulary"))
    extended.add_token_to_namespace("river", "tokens")
    model = Model.from_params(Params(deepcopy(config)), vocab=extended)
    (table,) = (one for one in model.modules() if isinstance(one, Embedding))
    assert table.num_embeddings == extended.get_vocab_size("tokens")


@pytest.mark.parametrize(
    "kept, told",
    [
        ("[3]", "expected the config of the model"),
        ('{"type": "from_archive"}', "expected the config of the model"),
        ("{", "to be plain JSON"),
        ('{"type": "basic_classifier", "trust_remote_code": true}', "trust_remote_code"),
    ],
)
def test_what_an_archive_of_others_keeps_is_data(kept: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "vocabulary").mkdir()
    (tmp_path / "vocabulary" / ".elmo_scratch-from_archive.json").write_text(kept, "utf-8")
    with pytest.raises(ConfigurationError, match=told):
        followed({"model": {"type": "from_archive", "archive_file": "gone"}}, tmp_path)
