import json
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from allennlp.common.checks import ConfigurationError

from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.examples.run_program import run_program

PROGRAM = PROJECT_ROOT / "examples" / "task_gains.py"

SMALL = {
    "model.bilm.token_encoder.dim": 4,
    "model.bilm.token_encoder.filters": [[1, 4]],
    "model.bilm.cell_size": 5,
    "model.softmax": {"type": "full"},
    "trainer.num_epochs": 1,
    "data_loader.batch_size": 2,
    "data_loader.unroll_steps": 5,
    "validation_data_loader.batch_size": 2,
    "validation_data_loader.unroll_steps": 5,
    "vocabulary.min_count": 1,
}


@pytest.fixture(scope="module")
def gains() -> Any:
    return SimpleNamespace(**runpy.run_path(str(PROGRAM)))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The fixtures under the names of the published files."""
    for name, fixture in {
        "sst/train.txt": "sst/train.txt",
        "sst/dev.txt": "sst/dev.txt",
        "conll2003/eng.train": "conll2003/train.txt",
        "conll2003/eng.testa": "conll2003/dev.txt",
        "conll2000/train.txt": "conll2000/train.txt",
        "ud_ewt/en_ewt-ud-train.conllu": "ud/train.conllu",
        "ud_ewt/en_ewt-ud-dev.conllu": "ud/dev.conllu",
    }.items():
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FIXTURES_ROOT / "tasks" / fixture, tmp_path / "data" / name)
    return tmp_path / "data"


TREES = "(3 (2 It) (4 (3 shines) (2 \\/)))\n(1 (2 -LRB-) (1 Dull))\n"
ENTITIES = "-DOCSTART- -X- O O\n\nAda NNP I-NP I-PER\nwaits VBZ I-VP O\n\nNo UH O O\n"
TREEBANK = (
    "# text = vámonos\n1-2\tvámonos\t_\n1\tvamos\tir\n2\tnos\tnosotros\n2.1\tya\t_\n\n"
    "# t\n1\tNo\tno\n"
)


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("sst/train.txt", TREES, [["It", "shines", "/"], ["(", "Dull"]]),
        ("conll2003/eng.train", ENTITIES, [["Ada", "waits"], ["No"]]),
        ("ud/train.conllu", TREEBANK, [["vamos", "nos"], ["No"]]),
    ],
)
def test_sentences_keep_their_labels_and_give_their_words(
    name: str, text: str, words: Any, gains: Any, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    sentences = gains.sentences_of(file)
    assert list(map(gains.words_of, sentences)) == words
    again = file.with_name("again.txt")
    again.write_text(gains.join_sentences(sentences), encoding="utf-8")
    assert gains.sentences_of(again) == sentences


def test_a_share_is_part_of_every_larger_one(gains: Any, data: Path, tmp_path: Path) -> None:
    texts = gains.write_texts(data, tmp_path)
    shares = [
        gains.sentences_of(texts.tasks["named entities", share][0]) for share in (0.01, 0.1, 1.0)
    ]
    assert len(shares[0]) == len(shares[1]) == 1
    assert shares[0] == shares[1] == shares[2][:1]
    whole = gains.sentences_of(data / "conll2003" / "eng.train")
    assert sorted(shares[2]) == sorted(whole)


def test_the_bilm_reads_no_dev_set(gains: Any, data: Path, tmp_path: Path) -> None:
    texts = gains.write_texts(data, tmp_path)
    read = [
        line
        for files in (texts.corpus, texts.tenth, *texts.own.values())
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    tried = {
        " ".join(gains.words_of(sentence))
        for _, dev in texts.tasks.values()
        for sentence in gains.sentences_of(dev)
    }
    trained = {
        " ".join(gains.words_of(sentence))
        for train, _ in texts.tasks.values()
        for sentence in gains.sentences_of(train)
    }
    assert set(read) >= trained - tried
    assert not set(read) & (tried - trained)


def test_no_data_is_an_error(gains: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected at least one of conll2000/train.txt"):
        gains.write_texts(tmp_path, tmp_path / "texts")


def score(gains: Any, form: str, seed: int, best: float) -> Any:
    return gains.Score("SST-5, 100%", form, seed, best, best - 0.01, 60.0, f"{form} {seed}")


def test_the_table_tells_gains_and_what_they_are_worth(gains: Any) -> None:
    pairs = [("none", 0, 0.40), ("none", 1, 0.44), ("input", 0, 0.48), ("input", 1, 0.48)]
    lines = gains.markdown([score(gains, *pair) for pair in pairs]).splitlines()
    # √(0.04² / 2) = 0.0283; 6 points of 58 are gone, where the paper's are 3.3 of 48.6.
    assert lines[2] == "| SST-5, 100% | none | 2 | 42.00 ± 2.83 | 41.00 ± 2.83 |  |  |  | 60 s |"
    assert lines[3] == (
        "| SST-5, 100% | input | 2 | 48.00 ± 0.00 | 47.00 ± 0.00 | +6.00 (+2.1 sd) | 10.3% | 152% "
        "| 60 s |"
    )


def test_a_second_table_tells_what_helps(gains: Any) -> None:
    forms = [("input and output", 0.48), ("input and output", 0.52), ("the top layer alone", 0.47)]
    scores = [score(gains, form, seed, best) for seed, (form, best) in enumerate(forms)]
    first, second = gains.markdown(scores).split("What helps")
    assert "the top layer" not in first
    lines = second.splitlines()
    assert lines[4] == (
        "| SST-5, 100% | input and output | 2 | 50.00 ± 2.83 | 49.00 ± 2.83 |  | 60 s |"
    )
    assert lines[5] == "| SST-5, 100% | the top layer alone | 1 | 47.00 | 46.00 | -3.00 | 60 s |"
    assert "What helps" not in gains.markdown(scores[:2])


def plan_of(gains: Any, data: Path, folder: Path) -> Any:
    texts = gains.write_texts(data, folder / "texts")
    plan = gains.Plan(folder, SMALL, {})
    plan.add_bilms(texts)
    for (name, share), files in texts.tasks.items():
        for title, form in {**gains.FORMS, **gains.HELPS.get((name, share), {})}.items():
            plan.add_form(name, share, title, form, files, 0)
    return plan


def test_whatever_a_training_needs_is_chosen_with_it(
    gains: Any, data: Path, tmp_path: Path
) -> None:
    plan = plan_of(gains, data, tmp_path)
    names = [task.name for task in gains.chosen(plan.tasks, "dependencies, 10%: the biLM", {})]
    own = "fine-tuned biLM, dependencies"
    assert names[:2] == ["biLM", own]
    assert names[2:] == ["dependencies, 10%: the biLM fine-tuned on the task's text, seed 0"]
    # Not for what has been trained already.
    (task,) = (task for task in plan.tasks if task.name == own)
    task.folder.mkdir(parents=True)
    (task.folder / "done").touch()
    names = [task.name for task in gains.chosen(plan.tasks, "dependencies, 10%: the biLM", {})]
    assert "biLM" not in names


def test_trainings_differ_by_their_forms(gains: Any, data: Path, tmp_path: Path) -> None:
    plan = plan_of(gains, data, tmp_path)
    assert len({task.fingerprint() for task in plan.tasks}) == len(plan.tasks)
    assert len({task.folder for task in plan.tasks}) == len(plan.tasks)
    forms = {
        task.row: task.settings["config"]
        for task in plan.tasks
        if task.part == "named entities, 10%"
    }
    elmo = "text_field_embedder", "token_embedders", "elmo"

    def mixes(form: str) -> Any:
        config = forms[form]["model"]
        for key in elmo:
            config = config[key]
        return [config[key]["type"] for key in ("mix", "output_mix")]

    assert mixes("input and output") == ["trainable", "trainable"]
    assert mixes("the top layer alone") == ["top", "top"]
    (rule,) = forms["input and output"]["model"]["regularizer"]["regexes"]
    (other,) = forms["ten times that L2"]["model"]["regularizer"]["regexes"]
    assert rule[0] == other[0] and 10 * rule[1]["alpha"] == other[1]["alpha"]
    assert forms["no L2 on the weights of layers"]["model"]["regularizer"] is None
    # Each share is read as often as it is to be, however often dev is looked at: a sentence is a
    # batch here, and dev is looked at six times.
    none = forms["none"]
    assert none["data_loader"]["batches_per_epoch"] * none["trainer"]["num_epochs"] == 24


def test_what_is_known_is_read_again(gains: Any, tmp_path: Path) -> None:
    scores = [score(gains, "none", 0, 0.4), score(gains, "input", 0, 0.5)]
    gains.write_results(scores, tmp_path)
    known = gains.read_scores(tmp_path / "gains.json")
    assert list(known.values()) == scores and list(known) == ["none 0", "input 0"]


@pytest.mark.parametrize("text", ["[1]", "{", '[{"part": "a"}]'])
def test_another_file_is_an_error(text: str, gains: Any, tmp_path: Path) -> None:
    file = tmp_path / "gains.json"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match="gains.json: expected the `gains.json` of such"):
        gains.read_scores(file)


@pytest.mark.exhaustive
def test_it_runs_from_the_text_to_the_table(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    words = [str(data), "--seeds", "1", "--bilm", json.dumps(SMALL)]
    words += [
        "--overrides",
        '{"trainer.num_epochs": 1}',
        "--only",
        "entities, 10%: (none|input and|the biLM)",
    ]
    done = run_program(PROGRAM, *words, "--folder", str(folder))
    assert done.status == 0, done.errors
    scores = json.loads((folder / "gains.json").read_text())
    forms = ["none", "input and output", "the biLM fine-tuned on the task's text"]
    assert [one["form"] for one in scores] == forms
    assert (folder / "gains.md").read_text() in done.output
    # Elsewhere none of them is trained again, nor the biLMs.
    known = ["--results", str(folder / "gains.json")]
    done = run_program(PROGRAM, *words, "--folder", str(tmp_path / "elsewhere"), *known)
    assert done.status == 0, done.errors
    assert json.loads((tmp_path / "elsewhere" / "gains.json").read_text()) == scores
    assert not (tmp_path / "elsewhere" / "biLM").exists()
    # With other settings the folder is not touched.
    other = words + ["--overrides", '{"trainer.num_epochs": 2}', "--folder", str(folder)]
    done = run_program(PROGRAM, *other)
    assert done.status == 2 and "hold what other settings or texts have made" in done.errors
