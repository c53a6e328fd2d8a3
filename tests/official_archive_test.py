"""What a task's archive keeps of a biLM in the official files, once the files are gone."""

import copy
import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import pytest
import torch
from allennlp.common import Params
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models import Model
from allennlp.models.archival import load_archive
from allennlp.modules.token_embedders import TokenEmbedder
from allennlp.predictors import Predictor

from elmo_scratch import Elmo, OfficialEmbedder, batch_to_ids
from elmo_scratch.data.readers import ag_news_rows
from elmo_scratch.interop.official.options import Options
from tests.tiny_elmo import OPTIONS, SENTENCES, WIDTH, OfficialFiles, write_files
from tests.tiny_training import EXT_VARS, train

IDS = batch_to_ids(SENTENCES)
NUM_ROWS = 23


class Task(NamedTuple):
    """The output folder of a training, and what its embedder is configured by."""

    folder: Path
    files: OfficialFiles
    settings: Dict[str, Any]

    def config(self) -> Dict[str, Any]:
        return {
            "type": "elmo_scratch_from_official",
            "options_file": self.files.options,
            "weight_file": self.files.weights,
            **self.settings,
        }

    def build(self) -> OfficialEmbedder:
        """As AllenNLP builds it, in a training and from an archive."""
        embedder = TokenEmbedder.from_params(
            Params(self.config()), vocab=Vocabulary(), serialization_dir=str(self.folder)
        )
        assert isinstance(embedder, OfficialEmbedder)
        return embedder.eval()

    def delete_files(self) -> None:
        for file in [*self.files, self.settings.get("warm_up_file")]:
            if file is not None:
                Path(file).unlink(missing_ok=True)


def new_task(
    folder: Path, options: Options = OPTIONS, num_words: Any = None, **settings: Any
) -> Task:
    return Task(folder / "run", write_files(folder / "official", options, num_words), settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"mix": {"type": "function"}, "projection_dim": 5},
        {"do_layer_norm": True, "requires_grad": True},
        {"vocab_to_cache": ["@@PADDING@@", "The", "sentence"], "matmul_dtype": "bfloat16"},
    ],
)
def test_weights_of_an_archive_replace_the_files(settings: Dict[str, Any], tmp_path: Path) -> None:
    task = new_task(tmp_path, **settings)
    trained = task.build()
    expected, weights = trained(IDS), trained.state_dict()
    task.delete_files()
    loaded = task.build()
    loaded.load_state_dict(weights)
    assert torch.equal(loaded(IDS), expected)


def test_words_computed_ahead_follow_the_weights_of_an_archive(tmp_path: Path) -> None:
    task = new_task(tmp_path, vocab_to_cache=["@@PADDING@@", "The", "sentence"])
    words = torch.tensor([[1, 2, 0], [2, 1, 2]])
    zeros = torch.zeros(2, 3, 50, dtype=torch.long)
    trained = task.build()
    expected, weights = trained(zeros, words), trained.state_dict()
    task.delete_files()
    loaded = task.build()
    loaded.load_state_dict(weights)
    assert torch.equal(loaded(zeros, words), expected)


@pytest.mark.parametrize("missing", OfficialFiles._fields)
def test_one_missing_file_is_enough_to_take_the_archives_weights(
    missing: str, tmp_path: Path
) -> None:
    task = new_task(tmp_path)
    trained = task.build()
    Path(getattr(task.files, missing)).unlink()
    loaded = task.build()
    loaded.load_state_dict(trained.state_dict())
    assert torch.equal(loaded(IDS), trained(IDS))


def test_a_folder_that_cannot_be_written_to_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, expected = new_task(tmp_path), new_task(tmp_path).build()(IDS)
    shutil.rmtree(task.folder)

    reasons = [errno.EACCES, errno.EROFS, errno.ENOSPC]

    def refuse(*_: Any) -> None:
        number = reasons.pop(0)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("elmo_scratch.interop.official.options.keep_in_archive", refuse)
    for _ in range(2):
        assert torch.equal(task.build()(IDS), expected)
    with pytest.raises(OSError, match="No space left"):
        task.build()


@pytest.mark.parametrize("mix", ["trainable", "frozen", "function"])
def test_without_any_weights_no_vector_looks_right(mix: str, tmp_path: Path) -> None:
    task = new_task(tmp_path, mix={"type": mix}, projection_dim=5)
    task.build()
    task.delete_files()
    vectors = task.build()(IDS)
    assert vectors[1].isnan().all() and vectors[0, :3].isnan().all()


def test_a_bilm_without_projections_is_built_again(tmp_path: Path) -> None:
    lstm = replace(OPTIONS.lstm, dim=16, use_skip_connections=False, cell_clip=None)
    task = new_task(tmp_path, replace(OPTIONS, lstm=lstm))
    trained = task.build()
    task.delete_files()
    loaded = task.build()
    loaded.load_state_dict(trained.state_dict())
    assert torch.equal(loaded(IDS), trained(IDS))


def test_a_bilm_of_words_is_built_again(tmp_path: Path) -> None:
    task = new_task(tmp_path, Options(OPTIONS.lstm, None), num_words=9)
    ids = torch.tensor([[3, 4, 9], [5, 0, 0]])
    trained = task.build()
    expected = trained(ids)
    task.delete_files()
    loaded = task.build()
    loaded.load_state_dict(trained.state_dict())
    assert torch.equal(loaded(ids), expected)


def warm_task(folder: Path) -> Task:
    text = folder / "text.txt"
    text.write_text("The river rose .\n\n  It rose for days .\nnaïve\n", encoding="utf-8")
    return new_task(folder, state="warm", warm_up_file=str(text))


def test_a_text_warms_up_line_by_line(tmp_path: Path) -> None:
    task = warm_task(tmp_path)
    embedder = task.build()
    expected = task.files.ours(state="warm")
    expected.warm_up([["The", "river", "rose", "."], "It rose for days .".split(), ["naïve"]])
    for _ in range(2):
        assert torch.equal(embedder(IDS), expected(IDS)["elmo_representations"][0])


@pytest.mark.parametrize("are_files_gone", [False, True])
@pytest.mark.parametrize("is_text_gone", [False, True])
def test_the_warm_state_comes_from_the_archive(
    is_text_gone: bool, are_files_gone: bool, tmp_path: Path
) -> None:
    task = warm_task(tmp_path)
    trained = task.build()
    expected = trained(IDS)
    text = Path(task.settings["warm_up_file"])
    for file in [*task.files] * are_files_gone + [str(text)] * is_text_gone:
        Path(file).unlink()
    if not is_text_gone:
        text.write_text("Something else .", encoding="utf-8")
    loaded = task.build()
    loaded.load_state_dict(trained.state_dict())
    assert torch.equal(loaded(IDS), expected)


# Whole trainings.


def first_rows(path: Path) -> str:
    """A file with the first rows of the fixtures' news."""
    lines = Path(EXT_VARS["NEWS_TRAIN"]).read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:NUM_ROWS]), encoding="utf-8")
    return str(path)


def params_of(reader: Dict[str, Any], data: str, model: Dict[str, Any]) -> Params:
    return Params(
        {
            "dataset_reader": reader,
            "train_data_path": data,
            "validation_data_path": data,
            "model": model,
            "data_loader": {"batch_size": 7},
            "trainer": {"num_epochs": 1, "optimizer": "adam"},
        }
    )


def predictions_of(model: Model, reader: DatasetReader, data: str) -> List[Any]:
    """What a model says of some texts, from the states that a first batch starts from."""
    instances = list(reader.read(data))[:5]
    for instance in instances:
        reader.apply_token_indexers(instance)
    for module in model.modules():
        if isinstance(module, Elmo):
            module.reset_states()
    outputs = model.eval().forward_on_instances(instances)
    (key,) = {"probs", "probabilities"} & set(outputs[0])
    return [output[key] if key == "probabilities" else output[key].tolist() for output in outputs]


def assert_the_archive_stands_alone(params: Params, folder: Path, *tasks: Task) -> Model:
    """Trains, deletes all official files, and predicts the same with the archive."""
    data = params["train_data_path"]
    reader = DatasetReader.from_params(copy.deepcopy(params["dataset_reader"]))
    expected = predictions_of(train(params, folder / "run"), reader, data)
    for task in tasks:
        task.delete_files()
    shutil.move(folder / "run" / "model.tar.gz", folder / "moved.tar.gz")
    shutil.rmtree(folder / "run")
    archive = load_archive(folder / "moved.tar.gz")
    assert predictions_of(archive.model, archive.dataset_reader, data) == expected
    return archive.model


@pytest.mark.parametrize("indexer", ["elmo_characters", "elmo_scratch_characters"])
def test_allennlps_own_classifier_trains_with_it(indexer: str, tmp_path: Path) -> None:
    data, task = tmp_path / "rows.jsonl", new_task(tmp_path)
    with open(data, "w", encoding="utf-8") as file:
        for row in ag_news_rows(first_rows(tmp_path / "rows.csv")):
            file.write(json.dumps({"text": row.description, "label": row.label}) + "\n")
    reader = {
        "type": "text_classification_json",
        "tokenizer": "spacy_blank",
        # AllenNLP's classifier does not do without ids of words.
        "token_indexers": {"elmo": {"type": indexer}, "tokens": {"type": "single_id"}},
    }
    words = {"type": "embedding", "embedding_dim": 3}
    classifier = {
        "type": "basic_classifier",
        "text_field_embedder": {"token_embedders": {"elmo": task.config(), "tokens": words}},
        "seq2vec_encoder": {"type": "bag_of_embeddings", "embedding_dim": WIDTH + 3},
    }
    params = params_of(reader, str(data), classifier)
    model = assert_the_archive_stands_alone(params, tmp_path, task)
    (elmo,) = [module for module in model.modules() if isinstance(module, Elmo)]
    assert elmo.mixes[0].gamma.item() != 1.0
    predicted = Predictor.from_path(str(tmp_path / "moved.tar.gz")).predict("The river rose.")
    assert predicted["label"] in model.vocab.get_token_to_index_vocabulary("labels")


def test_two_bilms_live_in_one_classifier_of_news(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "warm").mkdir()
    lstm = replace(OPTIONS.lstm, dim=9, projection_dim=7, n_layers=1)
    tasks = {
        "small": new_task(
            tmp_path / "small",
            replace(OPTIONS, lstm=lstm),
            mix={"type": "function"},
            state="reset",
            requires_grad=True,
        ),
        "warm": warm_task(tmp_path / "warm"),
    }
    indexers = {
        "small": {"type": "elmo_characters"},
        "warm": {"type": "elmo_scratch_characters"},
    }
    reader = {"type": "ag_news", "token_indexers": indexers}
    classifier = {
        "type": "elmo_scratch_classifier",
        "text_field_embedder": {
            "token_embedders": {name: task.config() for name, task in tasks.items()}
        },
        "seq2vec_encoder": {"type": "bag_of_embeddings", "embedding_dim": 2 * 7 + WIDTH},
    }
    params = params_of(reader, first_rows(tmp_path / "rows.csv"), classifier)
    model = assert_the_archive_stands_alone(params, tmp_path, *tasks.values())
    small = model.get_submodule("text_field_embedder.token_embedder_small.elmo.bilm")
    assert all(parameter.requires_grad for parameter in small.parameters())
