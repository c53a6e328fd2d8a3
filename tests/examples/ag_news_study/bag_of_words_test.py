import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Dict

from elmo_scratch.data.ag_news_rows import ag_news_rows
from tests.examples.ag_news_study import DEV, STUDY, TRAIN


def test_the_same_rows_get_the_same_answers(modules: Dict[str, ModuleType]) -> None:
    train, dev = list(ag_news_rows(TRAIN)), list(ag_news_rows(DEV))
    first, second = (modules["bag_of_words"].bag_of_words(train, dev, True) for _ in range(2))
    assert first.predicted == second.predicted
    assert first.labels == [row.label for row in dev]
    without = modules["bag_of_words"].bag_of_words(train, dev, False)
    assert without.predicted != first.predicted


def test_it_prints_what_it_reaches(modules: Dict[str, ModuleType]) -> None:
    script = str(STUDY / "bag_of_words.py")
    done = subprocess.run(
        [sys.executable, script, str(TRAIN), str(DEV)], capture_output=True, text=True, check=True
    )
    train, dev = list(ag_news_rows(TRAIN)), list(ag_news_rows(DEV))
    for line, use_title in zip(done.stdout.splitlines(), (False, True), strict=True):
        answers = modules["bag_of_words"].bag_of_words(train, dev, use_title)
        right = sum(one == other for one, other in zip(answers.labels, answers.predicted))
        assert f": {right / len(dev):.2%} in " in line


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    script = str(STUDY / "bag_of_words.py")
    done = subprocess.run(
        [sys.executable, script, str(TRAIN), "no.csv"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("error: no.csv: there is no such file")
