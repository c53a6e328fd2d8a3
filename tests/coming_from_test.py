"""Each line of docs/coming_from.md that can run is run, in the order of the page."""

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import numpy
import pytest
from _jsonnet import evaluate_snippet  # type: ignore[import-not-found]
from allennlp import commands
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, TokenIndexer, Vocabulary
from allennlp.models import Model
from allennlp.modules.token_embedders import TokenEmbedder

import elmo_scratch.registered  # noqa: F401  (all names that configs may have)
from elmo_scratch_compat.old_keys import OLD_KEYS
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.local_hub import local_hub
from tests.tiny_archives import SENTENCES, VOCABULARY_LINES, archive_of, write_lines
from tests.tiny_elmo import OfficialFiles
from tests.tiny_training import CONFIGS

PAGE = (PROJECT_ROOT / "docs" / "coming_from.md").read_text("utf-8")
KINDS: Tuple[Any, ...] = (TokenIndexer, TokenEmbedder, DatasetReader, Vocabulary, Model)
RUNS = "Runs as it is"

ONE_EPOCH = {
    "data_loader+": {"batch_size": 4},
    "validation_data_loader+": {"batch_size": 1},
    "trainer+": {"num_epochs": 1},
}

TINY = {
    "original": {
        "model+": {
            "bilm+": {
                "token_encoder+": {"dim": 4, "filters": [[1, 4], [2, 8]]},
                "cell_size": 6,
            },
            "softmax+": {"num_samples": 10},
        },
        **ONE_EPOCH,
    },
    "fine_tune": ONE_EPOCH,
}
"""What is smaller in the configs that the page names."""

CLASSIFIER = {
    "dataset_reader": {
        "type": "text_classification_json",
        "token_indexers": {
            "elmo": {"type": "elmo_characters"},
            "tokens": {"type": "single_id"},
        },
    },
    "train_data_path": "texts.jsonl",
    "validation_data_path": "texts.jsonl",
    "model": {
        "type": "basic_classifier",
        "text_field_embedder": {
            "token_embedders": {
                "elmo": {
                    "type": "elmo_scratch_from_official",
                    "options_file": "options.json",
                    "weight_file": "weights.hdf5",
                },
                "tokens": {"type": "empty"},
            },
        },
        "seq2vec_encoder": {"type": "boe", "embedding_dim": 32},
    },
    "trainer": {"optimizer": "adam", "num_epochs": 1, "cuda_device": -1},
}
"""What a part of a config is put into."""

REFUSED = [
    *("model.text_field_embedder.elmo", "iterator", "iterator", "validation_iterator"),
    *("dataset_reader.tokenizer.word_splitter", "model.regularizer"),
    *("trainer.num_serialized_models_to_keep", "trainer.shuffle", "dataset_reader.lazy"),
]
"""The old parts, as their errors name them."""


class Row(NamedTuple):
    """A line of a table: the code of its first two cells, and what the third says."""

    old: str
    new: str
    difference: str


def rows_of(title: str) -> List[Row]:
    """The lines of the table below a heading."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return [Row(code_in(old), code_in(new), told) for old, new, told in cells[2:]]


def code_in(cell: str) -> str:
    """The first piece of code of a cell; `""` where there is none."""
    return (re.findall(r"`([^`]+)`", cell) or [""])[0]


@pytest.fixture
def folder(tmp_path: Path, files: OfficialFiles, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What the page names, in the current folder: small files, and configs with small sizes."""
    (tmp_path / "folder").mkdir()
    for source, places in (
        (files.options, ["options.json", "folder/options.json"]),
        (files.weights, ["weights.hdf5", "folder/model.hdf5"]),
        (FIXTURES_ROOT / "text" / "tour.txt", ["text.txt", "heldout.txt"]),
        (FIXTURES_ROOT / "text" / "tour.txt", ["corpus/1", "corpus/2", "domain/1"]),
    ):
        for place in places:
            (tmp_path / place).parent.mkdir(exist_ok=True)
            shutil.copy(source, tmp_path / place)
    write_lines(tmp_path / "vocab.txt", VOCABULARY_LINES)
    (tmp_path / "training_config" / "bilm").mkdir(parents=True)
    for name, smaller in TINY.items():
        source = f"(import {str(CONFIGS / 'bilm' / f'{name}.jsonnet')!r}) + "
        text = re.sub(r'"(\w+)\+":', r"\1+:", json.dumps(smaller))
        (tmp_path / f"training_config/bilm/{name}.jsonnet").write_text(source + text, "utf-8")
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "corpora"))
    monkeypatch.setattr(commands, "import_plugins", lambda: None)
    monkeypatch.chdir(tmp_path)
    yield tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Dict[str, Any]], None]:
    """Runs a cell: a command, what a config may hold, or lines of Python that share names."""

    def run(code: str, names: Dict[str, Any]) -> None:
        words = shlex.split(code)
        if "allennlp" in words and words[0] != "from":
            place = words.index("allennlp")
            with monkeypatch.context() as patch:
                for variable in words[:place]:
                    patch.setenv(*variable.split("=", 1))
                patch.setattr(sys, "argv", words[place:])
                commands.main("allennlp")
        elif code.startswith("{"):
            names["kind"] = kind_of(json.loads(evaluate_snippet("page", code)))
        else:
            exec(code, names)

    return run


def kind_of(config: Dict[str, Any]) -> Any:
    """Makes what AllenNLP makes of a part of a config; returns the kind of thing that it is."""
    (kind,) = [kind for kind in KINDS if config["type"] in kind.list_available()]
    vocab = Vocabulary.from_instances([])
    vocab.add_tokens_to_namespace([word for sentence in SENTENCES for word in sentence])
    assert isinstance(kind.from_params(Params(config), vocab=vocab), kind)
    return kind


def run_table(
    title: str, run: Callable[[str, Dict[str, Any]], None]
) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Runs a table; returns the names that the old lines have left, and those of the new ones."""
    old: Dict[str, Any] = {"sentences": SENTENCES}
    new: Dict[str, Any] = {"sentences": SENTENCES}
    for row in rows_of(title):
        if row.difference.startswith(RUNS):
            run(row.old, old)
        run(row.new, new)
        assert old.pop("kind", new.get("kind")) is new.pop("kind", None)
    return old, new


def test_lines_of_allennlp_0_9(folder: Path, run: Callable[[str, Dict[str, Any]], None]) -> None:
    old, new = run_table("AllenNLP 0.9", run)
    assert old["ElmoEmbedder"] is new["ElmoEmbedder"]
    numpy.testing.assert_array_equal(old["layers"], new["layers"])
    assert [each.shape for each in old["every"]] == [each.shape for each in new["every"]]
    for theirs, ours in zip(*[names["mixed"]["elmo_representations"] for names in (old, new)]):
        numpy.testing.assert_allclose(theirs.detach(), ours.detach(), atol=1e-5)
    for name in ("old", "new", "elmo", "layers"):
        assert (folder / f"{name}.hdf5").is_file()


def test_lines_of_allennlp_2(folder: Path, run: Callable[[str, Dict[str, Any]], None]) -> None:
    shutil.copy(archive_of(folder / "archived"), "model.tar.gz")
    os.rename(folder / "archived" / "run", "run")
    with local_hub(folder / "cache") as hub:
        old, new = run_table("AllenNLP 2", run)
    assert old["mix"].mixture_size == 3 and new["mix"].weights.shape == (3,)
    assert "weights.th" in hub.repositories["me/news"]


def test_lines_of_bilm_tf(folder: Path, run: Callable[[str, Dict[str, Any]], None]) -> None:
    _, new = run_table("bilm-tf", run)
    assert {path.name for path in (folder / "exported").iterdir()} == {
        *("options.json", "weights.hdf5", "vocab.txt")
    }
    assert (folder / "runs" / "domain" / "model.tar.gz").is_file()
    assert new["output"].layers.shape == (3, len(SENTENCES), 7, 32)
    assert not any(row.difference.startswith(RUNS) for row in rows_of("bilm-tf"))


def test_lines_of_simple_elmo(folder: Path, run: Callable[[str, Dict[str, Any]], None]) -> None:
    _, new = run_table("simple_elmo", run)
    assert [each.shape for each in new["layers"]] == [(3, len(each), 32) for each in SENTENCES]
    assert [each.shape for each in new["top"]] == [(len(each), 32) for each in SENTENCES]
    numpy.testing.assert_allclose(numpy.linalg.norm(new["means"], axis=1), 1, rtol=1e-6)
    assert (folder / "simple.hdf5").is_file()


def test_parts_of_a_config_of_allennlp_0_9(folder: Path) -> None:
    (folder / "texts.jsonl").write_text('{"text": "The river", "label": "water"}\n' * 2, "utf-8")

    def check(index: int, part: str) -> None:
        whole = f"std.mergePatch({json.dumps(CLASSIFIER)}, {part})"
        config = json.loads(evaluate_snippet("page", whole))
        config.setdefault("data_loader", {"batch_size": 2})
        train_model(Params(config), folder / "checked" / str(index), dry_run=True, force=True)

    for index, row in enumerate(rows_of("Old configs")):
        told = f"^{REFUSED[index]} is written for an older AllenNLP. "
        with pytest.raises(ConfigurationError, match=told):
            check(index, row.old)
        check(index, row.new)


@pytest.mark.parametrize("key", [*OLD_KEYS, "initializer", "regularizer", "cuda_device"])
def test_the_page_has_each_old_setting_that_errors_know(key: str) -> None:
    section = PAGE.split("### Configs of AllenNLP 0.9")[1].split("\n## ")[0]
    assert re.search(rf"\b{key.rpartition('.')[2]}\b", section)


def test_each_table_was_read() -> None:
    titles = [title for title in re.findall(r"^## (.*)$", PAGE, re.MULTILINE) if rows_of(title)]
    assert [len(rows_of(title)) for title in titles] == [9, 7, 11, 9, 9]
    # Only a line that repeats the one above has no code of its own.
    assert [row.old for title in titles for row in rows_of(title)].count("") == 1
    assert all(row.new and row.difference for title in titles for row in rows_of(title))
