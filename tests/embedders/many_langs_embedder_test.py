import json
import shutil
from pathlib import Path
from typing import Any, Callable, List

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch, Instance, Token, TokenIndexer, Vocabulary
from allennlp.data.fields import TextField
from allennlp.models.archival import load_archive
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_scratch import SentenceLayers
from elmo_scratch.data import CodePointIndexer
from elmo_scratch.data.indexers import spelled_words
from elmo_scratch.embedders import ManyLangsEmbedder
from elmo_scratch.embedders.task_bilm import many_langs_task_bilm
from elmo_scratch.interop.many_langs import ManyLangsBlueprint
from tests import FIXTURES_ROOT
from tests.tiny_training import train

MODELS = FIXTURES_ROOT / "elmo_for_many_langs"
SENTENCES: List[List[str]] = json.loads((MODELS / "sentences.json").read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODELS / "both", tmp_path / "model"))


def code_points_of(sentences: List[List[str]]) -> torch.Tensor:
    indexer = TokenIndexer.from_params(Params({"type": "elmo_scratch_code_points"}))
    assert isinstance(indexer, CodePointIndexer)
    texts = [TextField([Token(word) for word in words], {"elmo": indexer}) for words in sentences]
    batch = Batch([Instance({"text": text}) for text in texts])
    batch.index_instances(Vocabulary())
    tensors: Any = batch.as_tensor_dict()
    return tensors["text"]["elmo"]["code_points"]


def new_embedder(folder: Path, **settings: Any) -> ManyLangsEmbedder:
    config = {"type": "elmo_scratch_from_many_langs", "folder": str(folder), **settings}
    embedder = TokenEmbedder.from_params(Params(config), vocab=Vocabulary())
    assert isinstance(embedder, ManyLangsEmbedder)
    return embedder.eval()


def test_code_points_spell_any_word() -> None:
    words = ["a", "", "नाव", "🚢x", "\0"]
    ids = code_points_of([words])[0]
    assert ids.shape == (5, 4) and (ids[:, 0] == 1).all()
    assert spelled_words(ids) == words


@pytest.mark.parametrize("name", ["both", "characters", "words"])
def test_vectors_are_the_mean_of_the_layers_of_sentences(name: str) -> None:
    embedder = new_embedder(MODELS / name, mix={"type": "mean"})
    vectors = embedder(code_points_of(SENTENCES))
    layers = SentenceLayers.from_many_langs(MODELS / name, state="reset")(SENTENCES)
    assert vectors.shape == (6, 9, embedder.get_output_dim())
    for row, expected in zip(vectors, layers):
        length = expected.shape[1]
        assert torch.allclose(row[:length], torch.from_numpy(expected.mean(0)), atol=1e-5)
        assert not row[length:].any()


def test_a_frozen_bilm_stays_as_it_is_and_another_learns() -> None:
    ids = code_points_of(SENTENCES)
    for requires_grad in (False, True):
        embedder = new_embedder(MODELS / "both", requires_grad=requires_grad).train()
        embedder(ids).sum().backward()
        encoder = embedder.bilm.token_encoder
        assert all((weight.grad is not None) == requires_grad for weight in encoder.parameters())
        assert embedder.bilm.training == requires_grad


def test_a_bilm_that_is_thawed_later_learns() -> None:
    embedder = new_embedder(MODELS / "both").train()
    embedder.bilm.requires_grad_(True)
    assert embedder.train().bilm.training
    embedder(code_points_of(SENTENCES)).sum().backward()
    assert all(weight.grad is not None for weight in embedder.bilm.parameters())


def test_a_folder_that_became_another_model_does_not_pass_for_the_old_one(
    folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    _, blueprint = many_langs_task_bilm(str(folder), run, state="reset")
    assert ManyLangsBlueprint.read(run, str(folder)) == blueprint
    shutil.rmtree(folder)
    shutil.copytree(MODELS / "characters", folder)
    bilm, kept = many_langs_task_bilm(str(folder), run, state="reset")
    assert kept == blueprint and all(weight.isnan().all() for weight in bilm.parameters())


def test_a_state_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match='`state` "reset" or "carry", but got "warm"'):
        new_embedder(MODELS / "both", state="warm")


def test_a_tagger_trains_with_it_and_its_archive_stands_alone(folder: Path, tmp_path: Path) -> None:
    data = str(FIXTURES_ROOT / "tasks" / "ud" / "dev.conllu")
    indexers = {"elmo": {"type": "elmo_scratch_code_points"}}
    embedder = {"type": "elmo_scratch_from_many_langs", "folder": str(folder)}
    params = Params(
        {
            "dataset_reader": {"type": "ud_pos", "token_indexers": indexers},
            "train_data_path": data,
            "validation_data_path": data,
            "model": {
                "type": "simple_tagger",
                "text_field_embedder": {"token_embedders": {"elmo": embedder}},
                "encoder": {"type": "pass_through", "input_dim": 14},
            },
            "data_loader": {"batch_size": 3},
            "trainer": {"num_epochs": 1, "optimizer": "adam"},
        }
    )
    trained = train(params, tmp_path / "run").eval()
    shutil.rmtree(folder)
    archive = load_archive(tmp_path / "run" / "model.tar.gz")
    instances = list(archive.dataset_reader.read(data))
    for instance in instances:
        archive.dataset_reader.apply_token_indexers(instance)
    expected = trained.forward_on_instances(instances)
    found = archive.model.eval().forward_on_instances(instances)
    for one, other in zip(found, expected):
        assert (one["logits"] == other["logits"]).all()


@pytest.mark.parametrize(
    "change, told",
    [
        (lambda kept: "{", "JSONDecodeError"),
        (lambda kept: [kept], "AttributeError"),
        (lambda kept: {key: {} for key in kept}, "KeyError('settings')"),
        (lambda kept: changed(kept, "settings", "dim", "wide"), "`dim` of `settings`"),
        (lambda kept: changed(kept, "settings", "cnn", [3]), "not enough values"),
        (lambda kept: changed(kept, "words", "<oov>", "x"), "expected ids above 0"),
        (lambda kept: {key: {**one, "words": None} for key, one in kept.items()}, "different mod"),
    ],
)
def test_a_damaged_blueprint_is_one_error_with_its_place(
    change: Callable[[Any], Any], told: str, folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    many_langs_task_bilm(str(folder), run, state="reset")
    kept = run / "vocabulary" / ".elmo_scratch-many-langs.json"
    other = change(json.loads(kept.read_text()))
    kept.write_text(other if isinstance(other, str) else json.dumps(other))
    with pytest.raises(
        ConfigurationError, match=r"\.elmo_scratch-many-langs\.json: expect"
    ) as error:
        many_langs_task_bilm(str(folder), run, state="reset")
    assert told in error.value.message


def changed(kept: Any, part: str, key: str, value: Any) -> Any:
    """The blueprints of a folder with another value in a part of each."""
    return {name: {**one, part: {**one[part], key: value}} for name, one in kept.items()}
