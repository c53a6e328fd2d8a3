"""
The configs of tasks do what their heads say: each trains by its own lines, and its archive, moved
to another folder, is evaluated and predicts by those of `common.libsonnet`. Only sizes are smaller.
"""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set

import pytest
from allennlp import commands
from allennlp.common.plugins import import_plugins

from tests import FIXTURES_ROOT
from tests.tiny_archives import BILM, archive_of
from tests.tiny_training import CONFIGS, EXT_VARS

PREDICTED = {
    "chunking": "tags",
    "constituency": "trees",
    "coref": "clusters",
    "dependencies": "predicted_heads",
    "ner": "tags",
    "paraphrase": "label",
    "pos": "tags",
    "quac": "best_span_str",
    "semantic_dependencies": "arcs",
    "seq2seq": "predicted_tokens",
    "snli": "label",
    "squad": "best_span_str",
    "srl": "tags",
    "sst": "label",
}
"""The tasks, and what each predicts."""

PROGRAMS = {"constituency": "gcc", "srl": "perl"}
"""What the scores of some tasks are computed with."""

NUM_MIXES = {"none": 0, "input": 1, "input_output": 2, "official": 1}
"""The forms of a config, and how often each mixes the layers of a biLM."""

FILES = {
    file.relative_to(CONFIGS).with_suffix("").as_posix(): file
    for task in PREDICTED
    for file in sorted((CONFIGS / task).glob("*.jsonnet"))
}

SIZE = re.compile(r"(local (?:\w+_(?:dim|size)|num_(?:filters|layers|blocks)) = )(\d+)\b")
"""What `copy_smaller` makes smaller."""


def form_of(name: str) -> str:
    return max((form for form in NUM_MIXES if name.endswith(form)), key=len)


def lines_of(config: Path) -> Iterator[List[str]]:
    """The words of each line to type in the head of a config: what stands behind three spaces."""
    for line in re.findall(r"^//   (\S.*)$", config.read_text(encoding="utf-8"), re.MULTILINE):
        yield shlex.split(line)


def cases() -> Iterator[Any]:
    """For each model one form, the one with most in it; the others are exhaustive."""
    for name in FILES:
        form = form_of(name)
        stands_for_all = form == "input_output" or (
            form == "input" and f"{name}_output" not in FILES
        )
        yield pytest.param(name, marks=[] if stands_for_all else [pytest.mark.exhaustive])


@pytest.fixture(scope="module")
def bilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a biLM over characters, hardly trained."""
    return archive_of(tmp_path_factory.mktemp("characters"), bilm=BILM)


@pytest.fixture(scope="module")
def plugins() -> Iterator[None]:
    """They are imported once: every command would look through all their modules again."""
    with pytest.MonkeyPatch.context() as patch:
        import_plugins()
        patch.setattr(commands, "import_plugins", lambda: None)
        yield


def copy_smaller(task: str, folder: Path) -> None:
    """Copies the configs of a task, with sizes that train in a moment."""
    shutil.copytree(CONFIGS / task, folder / task)
    shutil.copy(CONFIGS / "elmo.libsonnet", folder)
    common = folder / task / "common.libsonnet"
    smaller, count = SIZE.subn(
        lambda size: f"{size[1]}{max(2, int(size[2]) // 16)}", common.read_text(encoding="utf-8")
    )
    assert count > 0
    common.write_text(smaller, encoding="utf-8")


@pytest.mark.parametrize("name", cases())
def test_a_config_does_what_its_head_says(
    name: str, bilm: Path, plugins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task, form = name.split("/")[0], form_of(name)
    program = PROGRAMS.get(task)
    if program is not None and shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    copy_smaller(task, Path("training_config"))
    Path("runs").mkdir()
    given = Path("given")
    shutil.copytree(FIXTURES_ROOT / "elmo" / "residual", given)
    shutil.copy(bilm, given / "bilm.tar.gz")
    values = {
        **EXT_VARS,
        "BILM_ARCHIVE": str(given / "bilm.tar.gz"),
        "BILM_WIDTH": "12" if form == "official" else str(2 * BILM["token_encoder"]["dim"]),
        "ELMO_OPTIONS": str(given / "options.json"),
        "ELMO_WEIGHTS": str(given / "weights.hdf5"),
    }

    def allennlp(*words: str) -> None:
        monkeypatch.setattr(sys, "argv", ["allennlp", *words])
        commands.main("allennlp")

    *exports, train = lines_of(FILES[name])
    trained = Path("runs", name)
    assert train == ["allennlp", "train", f"training_config/{name}.jsonnet", "-s", str(trained)]
    variables = [word.split("=")[0] for words in exports for word in words[1:]]
    for variable in variables:
        monkeypatch.setenv(variable, values[variable])
    allennlp(*train[1:], "--overrides", '{"trainer.num_epochs": 1}')
    metrics = json.loads((trained / "metrics.json").read_text())
    Path("moved").mkdir()
    archive = str(shutil.move(trained / "model.tar.gz", "moved"))
    shutil.rmtree(trained)
    shutil.rmtree(given)
    for variable in variables:
        monkeypatch.delenv(variable)

    for words in lines_of(CONFIGS / task / "common.libsonnet"):
        words = [re.sub(r"^runs/.*/model.tar.gz$", archive, word) for word in words]
        words = [values[word[1:]] if word.startswith("$") else word for word in words]
        if words[0] == "echo":
            Path(words[-1]).write_text(f"{words[1]}\n", encoding="utf-8")
        else:
            allennlp(*words[1:], "--output-file", f"{words[1]}.jsonl")
    evaluated = json.loads(Path("evaluate.jsonl").read_text())
    predicted = [json.loads(line) for line in Path("predict.jsonl").read_text().splitlines()]
    assert predicted and all(PREDICTED[task] in one for one in predicted)

    measured = {metric: metrics[f"best_validation_{metric}"] for metric in evaluated}
    # A biLM of official files carries a state from batch to batch, here that of the training set's.
    assert form == "official" or evaluated == pytest.approx(measured, rel=1e-4, abs=1e-6)
    scales = [value for metric, value in metrics.items() if metric.startswith("gamma_")]
    assert len(scales) == NUM_MIXES[form]
    assert 1.0 not in scales  # where they start, and would stay if nothing read the vectors


def test_every_model_has_all_forms_that_it_can_have() -> None:
    tasks = {file.parent.name for file in CONFIGS.glob("*/common.libsonnet")} - {"ag_news"}
    assert tasks == set(PREDICTED)
    forms: Dict[str, Set[str]] = {}
    for name in FILES:
        forms.setdefault(name.removesuffix(form_of(name)), set()).add(form_of(name))
    without_output = {"snli/decomposable_attention_", "squad/qanet_"}
    for model, found in forms.items():
        assert found == set(NUM_MIXES) - ({"input_output"} if model in without_output else set())
