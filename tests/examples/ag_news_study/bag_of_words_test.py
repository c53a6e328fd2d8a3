from types import ModuleType
from typing import Dict

from elmo_scratch.data.readers import ag_news_rows
from tests.examples.ag_news_study import DEV, STUDY, TRAIN
from tests.examples.run_program import run_program


def test_the_same_rows_get_the_same_answers(modules: Dict[str, ModuleType]) -> None:
    train, dev = list(ag_news_rows(TRAIN)), list(ag_news_rows(DEV))
    first, second = (modules["bag_of_words"].bag_of_words(train, dev, True) for _ in range(2))
    assert first.predicted == second.predicted
    assert first.labels == [row.label for row in dev]
    without = modules["bag_of_words"].bag_of_words(train, dev, False)
    assert without.predicted != first.predicted


def test_it_prints_what_it_reaches(modules: Dict[str, ModuleType]) -> None:
    done = run_program(STUDY / "bag_of_words.py", str(TRAIN), str(DEV))
    assert done.status == 0
    train, dev = list(ag_news_rows(TRAIN)), list(ag_news_rows(DEV))
    for line, use_title in zip(done.output.splitlines(), (False, True), strict=True):
        answers = modules["bag_of_words"].bag_of_words(train, dev, use_title)
        right = sum(one == other for one, other in zip(answers.labels, answers.predicted))
        assert f": {right / len(dev):.2%} in " in line


def test_a_file_that_is_not_there_is_an_error() -> None:
    done = run_program(STUDY / "bag_of_words.py", str(TRAIN), "no.csv")
    assert done.status == 2
    assert done.errors.splitlines()[-1].endswith("error: no.csv: there is no such file")
