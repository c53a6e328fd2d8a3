"""How long the study says it will take."""

from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List

import pytest

from elmo_scratch.search.tasks import Task


def task(name: str, *needs: str) -> Task:
    return Task(name, "", "", [], {}, Path(name), list(needs), None)


@pytest.mark.parametrize(("jobs", "end"), [(1, 26.0), (2, 16.0), (3, 14.0)])
def test_what_others_need_ends_before_they_begin(
    modules: Dict[str, ModuleType], jobs: int, end: float
) -> None:
    tasks = [task("a"), task("b"), task("c", "a"), task("d", "a")]
    seconds = {"a": 3.0, "b": 5.0, "c": 7.0, "d": 11.0}
    # Of two at a time, "c" begins after 3 seconds, and "d" after 5.
    assert modules["expected"].seconds_until_the_end(tasks, seconds, jobs) == end


def test_a_row_takes_as_long_as_it_took_for_each_text(
    modules: Dict[str, ModuleType], one_seed: List[Any]
) -> None:
    seconds = modules["expected"].expected_seconds(one_seed, 15_872)
    halved = modules["expected"].expected_seconds(one_seed, 7_936)
    assert set(seconds) == {task.name for task in one_seed}
    assert halved == {name: one / 2 for name, one in seconds.items()}
    # Of five seeds, in 66 to 89 seconds.
    assert round(seconds["mixes: svd, seed 0"]) == 70


def test_what_is_done_takes_no_time(
    modules: Dict[str, ModuleType], one_seed: List[Any], tmp_path: Path
) -> None:
    (svd,) = [task._replace(folder=tmp_path) for task in one_seed if task.name == "svd"]
    assert modules["expected"].expected_seconds([svd], 15_872)["svd"] > 0.0
    (tmp_path / "done").touch()
    assert modules["expected"].expected_seconds([svd], 15_872)["svd"] == 0.0


def test_quick_is_one_bilm_each_mix_and_static_vectors(
    modules: Dict[str, ModuleType], one_seed: List[Any]
) -> None:
    plan = modules["plan"]
    tasks = plan.chosen_tasks(one_seed, plan.QUICK)
    mixes = [f"words from word2vec, {mix}" for mix in plan.MIXES]
    assert [task.row for task in tasks if task.row] == [*mixes, "word2vec", "svd"]
    assert [task.name for task in tasks if not task.row] == [
        "word2vec",
        "svd",
        "words from word2vec",
    ]
