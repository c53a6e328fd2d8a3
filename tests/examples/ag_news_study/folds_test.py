"""`folds.py`: each text is measured once, by what has learned nothing of it or of its like."""

from types import ModuleType
from typing import Any, Dict, List

import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.readers import CLASS_NAMES, AgNewsRow


def news(number: int, label: str) -> AgNewsRow:
    """A piece of news of words that no other one has."""
    words = [f"w{number}{letter}{label[:2]}" for letter in "abcdef"]
    return AgNewsRow(label, words[0], " ".join(words[1:]))


@pytest.fixture(scope="module")
def folds(modules: Dict[str, ModuleType], rows: List[AgNewsRow]) -> List[Any]:
    return modules["folds"].drawn_folds(rows, modules["folds"].same_news(rows), 4)


@pytest.fixture(scope="module")
def rows() -> List[AgNewsRow]:
    """40 pieces of each class, each sent twice: the second time with a word more."""
    first = [news(number, label) for number in range(40) for label in CLASS_NAMES.values()]
    return [*first, *(row._replace(description=f"{row.description} again") for row in first)]


def test_each_text_is_measured_once(folds: List[Any], rows: List[AgNewsRow]) -> None:
    assert sorted(row for fold in folds for row in fold.measured) == sorted(rows)
    for fold in folds:
        assert sorted([*fold.train, *fold.choosing, *fold.measured]) == sorted(rows)
        assert len(fold.choosing) == pytest.approx(len(rows) * 3 / 4 / 10, abs=4)
    # The folds of scikit-learn 1.7, the last for Python 3.10, differ in size.
    pytest.importorskip("sklearn", minversion="1.8")
    for fold in folds:
        labels = [row.label for row in fold.measured]
        assert {labels.count(label) for label in CLASS_NAMES.values()} == {20}


def test_what_tells_the_same_news_stays_together(folds: List[Any]) -> None:
    for fold in folds:
        parts = [{row.title for row in part} for part in fold]
        assert sum(map(len, parts)) == len(set.union(*parts))


def test_similar_to_others_of_a_group_is_of_the_group(modules: Dict[str, ModuleType]) -> None:
    chain = ["aa bb cc dd", "cc dd aa ee", "ee aa ff gg", "xx yy zz qq"]
    groups = modules["folds"].same_news([AgNewsRow("World", text, text) for text in chain], 0.2)
    assert groups.tolist() == [0, 0, 0, 1]
    alone = modules["folds"].same_news([AgNewsRow("World", text, text) for text in chain], 1.0)
    assert sorted(alone.tolist()) == [0, 1, 2, 3]


def test_groups_do_not_depend_on_how_many_rows_are_compared_at_once(
    modules: Dict[str, ModuleType], rows: List[AgNewsRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = modules["folds"].same_news(rows)
    monkeypatch.setattr(modules["folds"], "ROWS_AT_ONCE", 7)
    assert numpy.array_equal(modules["folds"].same_news(rows), groups)
    assert len(set(groups)) == len(rows) // 2


def test_the_same_rows_give_the_same_folds(
    modules: Dict[str, ModuleType], folds: List[Any], rows: List[AgNewsRow]
) -> None:
    groups = modules["folds"].same_news(rows)
    assert modules["folds"].drawn_folds(rows, groups, 4) == folds


def test_too_few_texts_are_told(modules: Dict[str, ModuleType], rows: List[AgNewsRow]) -> None:
    with pytest.raises(ConfigurationError, match="for 5 folds, but one class has 4"):
        modules["folds"].drawn_folds(rows[:16], numpy.arange(16), 5)
