"""What is made of the archive of a biLM of characters: layers, vectors for a task, HDF5 files."""

import json
import shutil
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any, Dict, List

import h5py
import numpy
import pytest
import torch
from allennlp import commands
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models import Model
from allennlp.models.archival import load_archive
from allennlp.predictors import Predictor

from elmo_scratch import BiLmEmbedder, SentenceLayers, batch_to_ids, read_bilm_archive
from tests import FIXTURES_ROOT
from tests.tiny_archives import CHAR_CNN, WORD_BILM, archive_of, write_lines
from tests.tiny_training import EXT_VARS, train

WIDTH, LAYERS = 2 * CHAR_CNN["dim"], 3
TEXTS = [["The", "unseen", "bank", "."], ["naïve"], ["river", "rates"]]
IDS = batch_to_ids(TEXTS)
CHARACTERS = {"type": "elmo_scratch_characters"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("characters")
    return archive_of(folder, has_corpus_vocabulary=True)


def expected_layers(archive: Path, text: List[str]) -> torch.Tensor:
    """Shape `(layers, tokens, width)`."""
    ids = batch_to_ids([text])
    bilm = read_bilm_archive(archive).bilm.eval()
    with torch.no_grad():
        return bilm(ids, torch.ones(1, len(text)).bool()).layers[:, 0, 1:-1]


def test_layers_of_sentences_are_those_of_the_bilm(archive: Path) -> None:
    embed = SentenceLayers.from_archive(archive, state="reset")
    for text, layers in zip(TEXTS, embed(TEXTS)):
        assert layers.shape == (LAYERS, len(text), WIDTH)
        assert numpy.allclose(layers, expected_layers(archive, text), atol=1e-6)


def test_words_that_the_vocabulary_lacks_have_vectors_of_their_own(archive: Path) -> None:
    one, other = SentenceLayers.from_archive(archive)([["zzyzx"], ["yzzyx"]])
    assert abs(one - other).max() > 1e-3


def test_the_command_writes_the_layers_of_each_line(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = write_lines(tmp_path / "text.txt", [" ".join(words) for words in TEXTS])
    words = ["elmo", str(text), str(tmp_path / "layers.hdf5"), "--all", "--weight-file"]
    monkeypatch.setattr(commands, "import_plugins", lambda: None)
    monkeypatch.setattr(sys, "argv", ["allennlp", *words, str(archive)])
    commands.main("allennlp")
    with h5py.File(tmp_path / "layers.hdf5") as file:
        for number, sentence in enumerate(TEXTS):
            expected = expected_layers(archive, sentence)
            assert numpy.allclose(file[str(number)][...], expected, atol=1e-6)


def test_vectors_for_a_task_are_the_mix_of_the_bilms_layers(archive: Path) -> None:
    embedder = BiLmEmbedder(Vocabulary(), pretrained_file=str(archive)).eval()
    embedder.mix.weights.data = torch.tensor([1.0, 2.0, 5.0]).log()  # shares 1/8, 2/8, 5/8
    embedded = embedder(IDS)
    for row, text in enumerate(TEXTS):
        first, second, third = expected_layers(archive, text)
        mixed = (first + 2 * second + 5 * third) / 8
        assert torch.allclose(embedded[row, : len(text)], mixed, atol=1e-6)
        assert not embedded[row, len(text) :].any()


def test_a_tasks_vocabulary_is_left_alone(archive: Path) -> None:
    vocab = Vocabulary(tokens_to_add={"tokens": ["shore"]})
    embedder = BiLmEmbedder(vocab, pretrained_file=str(archive))
    embedder.extend_vocab(vocab)
    assert vocab.get_vocab_size("tokens") == 3


def test_fine_tuned_every_parameter_gets_a_gradient(archive: Path) -> None:
    torch.manual_seed(13)
    embedder = BiLmEmbedder(Vocabulary(), pretrained_file=str(archive), requires_grad=True)
    embedder(IDS).pow(2).sum().backward()
    for name, parameter in embedder.named_parameters():
        assert parameter.grad is not None, name


def predictions_of(model: Model, reader: DatasetReader) -> List[Any]:
    instances = list(reader.read(EXT_VARS["NEWS_DEV"]))[:5]
    for instance in instances:
        reader.apply_token_indexers(instance)
    outputs = model.eval().forward_on_instances(instances)
    return [output["probabilities"] for output in outputs]


def test_a_classifier_loads_where_the_bilms_archive_is_no_more(
    archive: Path, tmp_path: Path
) -> None:
    lines = (FIXTURES_ROOT / "news" / "train.csv").read_text(encoding="utf-8").splitlines(True)
    (tmp_path / "rows.csv").write_text("".join(lines[:23]), encoding="utf-8")
    parent = Path(shutil.copy(archive, tmp_path / "bilm.tar.gz"))
    embedder = {"type": "elmo_scratch", "pretrained_file": str(parent)}
    reader: Dict[str, Any] = {"type": "ag_news", "token_indexers": {"elmo": dict(CHARACTERS)}}
    config: Dict[str, Any] = {
        "dataset_reader": deepcopy(reader),
        "train_data_path": str(tmp_path / "rows.csv"),
        "model": {
            "type": "elmo_scratch_classifier",
            "text_field_embedder": {"token_embedders": {"elmo": embedder}},
            "seq2vec_encoder": {"type": "bag_of_embeddings", "embedding_dim": WIDTH},
        },
        "data_loader": {"batch_size": 7},
        "trainer": {"num_epochs": 1, "optimizer": "adam"},
    }
    model = train(Params(config), tmp_path / "run")
    expected = predictions_of(model, DatasetReader.from_params(Params(reader)))
    parent.unlink()
    loaded = load_archive(tmp_path / "run" / "model.tar.gz")
    assert predictions_of(loaded.model, loaded.dataset_reader) == expected


def test_allennlps_own_classifier_needs_words_beside_it(archive: Path, tmp_path: Path) -> None:
    """By the lines of docs/using/allennlp.md."""
    data = tmp_path / "rows.jsonl"
    rows = [{"text": text, "label": text[:3]} for text in ("the bank lent", "rates rose", "lent")]
    data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    embedder = {"type": "elmo_scratch", "pretrained_file": str(archive)}
    config: Dict[str, Any] = {
        "dataset_reader": {
            "type": "text_classification_json",
            "tokenizer": "whitespace",
            "token_indexers": {"tokens": dict(CHARACTERS), "words": {"type": "single_id"}},
        },
        "train_data_path": str(data),
        "model": {
            "type": "basic_classifier",
            "text_field_embedder": {
                "token_embedders": {"tokens": embedder, "words": {"type": "empty"}}
            },
            "seq2vec_encoder": {"type": "bag_of_embeddings", "embedding_dim": WIDTH},
        },
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 1, "optimizer": "adam"},
    }
    train(Params(config), tmp_path / "run")
    predictor = Predictor.from_path(str(tmp_path / "run" / "model.tar.gz"))
    answer = predictor.predict_json({"sentence": "the unseen bank"})
    assert answer["tokens"] == ["the", "@@UNKNOWN@@", "bank"]
    assert answer["label"] in ("the", "rat", "len")


def test_ids_of_words_for_a_bilm_of_characters_are_an_error(archive: Path) -> None:
    embedder = BiLmEmbedder(Vocabulary(), pretrained_file=str(archive))
    with pytest.raises(ConfigurationError, match="`elmo_scratch_characters` makes, but got ids of"):
        embedder(torch.ones(2, 3, dtype=torch.long))


def test_another_number_of_characters_is_an_error(archive: Path) -> None:
    embedder = BiLmEmbedder(Vocabulary(), pretrained_file=str(archive))
    with pytest.raises(ConfigurationError, match="`max_characters_per_token` to 50"):
        embedder(IDS[:, :, :20])


def test_ids_of_characters_for_a_bilm_of_words_are_an_error(tmp_path: Path) -> None:
    vocab = Vocabulary(tokens_to_add={"tokens": ["river"]})
    archive = archive_of(tmp_path, bilm=WORD_BILM)
    embedder = BiLmEmbedder(vocab, pretrained_file=str(archive))
    with pytest.raises(ConfigurationError, match="`single_id` makes, but got ids of characters"):
        embedder(IDS)
