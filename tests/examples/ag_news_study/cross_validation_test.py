"""`cross_validation.py`: what each row reaches in each fold, and its standard error."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Dict

import numpy
import pytest
from allennlp.commands.evaluate import evaluate_from_archive
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.readers import ag_news_rows
from tests.examples.ag_news_study import DEV, STUDY, TRAIN
from tests.examples.run_program import run_program

PROGRAM = STUDY / "cross_validation.py"


def test_means_and_standard_errors_are_over_folds(modules: Dict[str, ModuleType]) -> None:
    module = modules["cross_validation"]
    found = [
        # Two seeds of a fold count as their mean.
        module.Measured("titles", "frozen biLM", 1, 0, 0.90, 0.93),
        module.Measured("titles", "frozen biLM", 1, 1, 0.92, 0.95),
        module.Measured("titles", "frozen biLM", 2, 0, 0.93, 0.94),
        module.Measured("titles", "no biLM", 1, 0, 0.90, 0.92),
        module.Measured("titles", "no biLM", 2, 0, 0.91, 0.90),
        module.Measured("titles", module.SVM, 1, 0, 0.88),
    ]
    table = module.markdown(found, 2500)
    assert "| frozen biLM | 2 | 2 | 92.00 ± 1.00 % | +1.50 ± 0.50 | 94.00% |" in table
    assert "| no biLM | 2 | 1 | 90.50 ± 0.50 % |  | 91.00% |" in table
    # A single fold tells no error.
    assert f"| {module.SVM} | 1 | 1 | 88.00 % | -2.00 |  |" in table
    assert "together" not in table
    # The mean of all rows is about 0.907, and there are 2,500 texts.
    assert "alone is 0.58 points" in table
    together = [
        module.Measured("titles", f"{row}{module.TOGETHER}", 1, 0, accuracy, None, "a b", 2)
        for row, accuracy in (("frozen biLM", 0.94), ("no biLM", 0.91))
    ]
    more = module.markdown([*found, *together], 2500)
    # The one is compared with the other, and not with a single classifier.
    assert "| frozen biLM, seeds together | 1 | 2 | 94.00 % | +3.00 |  |" in more
    assert "| no biLM, seeds together | 1 | 2 | 91.00 % |  |  |" in more
    assert "Seeds together: the mean of their probabilities answers" in more


def test_each_row_of_a_fold_is_trained_and_then_measured(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    rows = modules["cross_validation"].read_rows([TRAIN, DEV])
    folds = modules["folds"].drawn_folds(rows, numpy.arange(len(rows)), 2)
    modules["cross_validation"].write_fold(folds[0], tmp_path)
    planned = modules["cross_validation"].fold_tasks(tmp_path, 1, [0], {})
    tasks = modules["plan"].chosen_tasks(planned, "^descriptions: frozen biLM$")
    names = [task.name for task in tasks]
    assert names == [
        "fold 1, word2vec",
        "fold 1, words from word2vec",
        "fold 1, descriptions: frozen biLM, seed 0",
        "fold 1, descriptions: frozen biLM, seed 0, measured",
    ]
    assert [task.needs for task in tasks] == [[], names[:1], names[1:2], names[2:3]]
    # Nothing but the last one reads the texts that are measured.
    measured = str(tmp_path / "measured.csv")
    texts = [json.dumps([task.command, task.variables]) for task in tasks]
    assert [measured in text for text in texts] == [False, False, False, True]


def test_a_bag_of_words_is_measured_at_once(modules: Dict[str, ModuleType], tmp_path: Path) -> None:
    arguments = [str(TRAIN), str(DEV), "--folder", str(tmp_path), "--folds", "2"]
    ended = run_program(PROGRAM, *arguments, "--only", "none of these", "--similar", "1")
    assert ended.status == 0, ended.errors
    table = (tmp_path / "folds.md").read_text(encoding="utf-8")
    assert table in ended.output
    measured = modules["cross_validation"].read_measured(tmp_path / "folds.json")
    assert [(one.part, one.fold) for one in measured] == [
        ("descriptions", 1),
        ("descriptions", 2),
        ("titles", 1),
        ("titles", 2),
    ]
    assert modules["cross_validation"].markdown(measured, 320) == table


def test_texts_without_an_answer_are_an_error(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    module = modules["cross_validation"]
    answer = json.dumps({"probabilities": {"World": 0.25, "Sports": 0.75}})
    (tmp_path / module.ANSWERS).write_text(f"{answer}\n", encoding="utf-8")
    task = module.Task("", "", "", [], {}, tmp_path, [], None)
    found = module.read_answers(task, 1)
    assert (found.classes, found.probabilities.tolist()) == (["Sports", "World"], [[0.75, 0.25]])
    with pytest.raises(ConfigurationError, match="an answer to each of 2 texts, but there are 1"):
        module.read_answers(task, 2)


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["--folds", "1"], "expected two `--folds` at least"),
        (["--folds", "200"], "for 200 folds"),
        (["--results", str(STUDY / "study.json"), "--similar", "1"], "expected the `folds.json`"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], told: str, tmp_path: Path) -> None:
    ended = run_program(PROGRAM, str(TRAIN), str(DEV), "--folder", str(tmp_path), *arguments)
    assert ended.status in (1, 2)
    assert told in ended.errors.splitlines()[-1]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("forked_commands")
def test_it_trains_measures_and_goes_on(tmp_path: Path) -> None:
    command = [str(TRAIN), str(DEV), "--folder", str(tmp_path)]
    command += ["--folds", "2", "--similar", "1", "--seeds", "2"]
    command += ["--only", "^descriptions: no biLM"]
    command += ["--overrides", '{"trainer.num_epochs": 1}']
    done = run_program(PROGRAM, *command)
    assert done.status == 0, done.errors[-2000:]
    numbers = json.loads((tmp_path / "folds.json").read_text(encoding="utf-8"))["measured"]
    trained = [one for one in numbers if one["row"].startswith("no biLM")]
    assert [(one["fold"], one["seed"], one["num_together"]) for one in trained] == [
        *((1, 0, 1), (1, 1, 1), (1, 0, 2)),
        *((2, 0, 1), (2, 1, 1), (2, 0, 2)),
    ]
    fold = tmp_path / "fold_2"
    folders = [fold / "descriptions" / f"no_biLM-seed_{seed}" for seed in range(2)]
    # AllenNLP's own `evaluate` finds the same.
    metrics = evaluate_from_archive(folders[1] / "run" / "model.tar.gz", str(fold / "measured.csv"))
    assert trained[4]["accuracy"] == metrics["accuracy"]
    # Two classifiers together answer by the sum of their probabilities.
    texts = [(folder / "measured" / "answers.jsonl").read_text("utf-8") for folder in folders]
    answers = [[json.loads(line) for line in text.splitlines()] for text in texts]
    right = 0
    for row, one, other in zip(ag_news_rows(fold / "measured.csv"), *answers, strict=True):
        sums = {
            name: share + other["probabilities"][name]
            for name, share in one["probabilities"].items()
        }
        right += max(sums, key=sums.__getitem__) == row.label
    assert trained[5]["accuracy"] == pytest.approx(right / len(answers[0]))
    # As a program of its own it finds that nothing is left to do.
    program = [sys.executable, str(PROGRAM), *command]
    again = subprocess.run(program, capture_output=True, text=True, check=True)
    assert "steps to go" in done.output and "steps to go" not in again.stdout
    # Nor is it trained in another folder, where its numbers are known.
    elsewhere = [str(tmp_path / "elsewhere") if word == str(tmp_path) else word for word in command]
    known = ["--results", str(tmp_path / "folds.json")]
    other_folder = run_program(PROGRAM, *elsewhere, *known)
    assert (other_folder.status, "steps to go" in other_folder.output) == (0, False)
    assert json.loads((tmp_path / "elsewhere" / "folds.json").read_text("utf-8"))["measured"] == (
        numbers
    )
