"""How long the study will take, by how long it took before."""

import heapq
import json
from pathlib import Path
from statistics import median
from typing import Dict, Mapping, Sequence, Tuple

from elmo_scratch.search.tasks import Task
from elmo_scratch.terminal import duration

MEASURED = Path(__file__).with_name("study.json")
"""Of 15,872 texts; it has the seconds of each training of a row."""

NUM_TEXTS = 15_872

OF_CORE = "one core of an Intel Xeon without AMX"
"""Where the times were measured."""

SECONDS_OF_BILM = 3_300.0
"""Four were pre-trained in 47 to 62 minutes."""

PREPARATIONS = {
    "word2vec": 420.0,
    "word2vec with titles": 540.0,
    "svd": 120.0,
    "untrained words": 120.0,
}
"""Seconds of what else trainings of rows need."""

SECONDS_OF_FINE_TUNING = 4_200.0
"""A row that `MEASURED` lacks takes so long: ten epochs, of which four took 28 minutes."""


def expected_seconds(tasks: Sequence[Task], num_texts: int) -> Dict[str, float]:
    """
    # Parameters

    tasks : `Sequence[Task]`
        Of the study.
    num_texts : `int`
        How many they train on.

    # Returns

    `Dict[str, float]`
        What each task will take on a core, by its name; nothing for those that are done.
    """
    rows = json.loads(MEASURED.read_text(encoding="utf-8"))
    measured = {
        (row["part"], row["name"]): median(one["seconds"] for one in row["trainings"])
        for row in rows
    }
    seconds = {}
    for task in tasks:
        if task.row:
            known = measured.get((task.part, task.row), SECONDS_OF_FINE_TUNING)
        else:
            known = PREPARATIONS.get(task.name, SECONDS_OF_BILM)
        seconds[task.name] = 0.0 if task.is_done else known * num_texts / NUM_TEXTS
    return seconds


def seconds_until_the_end(tasks: Sequence[Task], seconds: Mapping[str, float], jobs: int) -> float:
    """
    # Parameters

    tasks : `Sequence[Task]`
        What is to be done, with all that it needs.
    seconds : `Mapping[str, float]`
        What each takes, by its name.
    jobs : `int`
        How many are done at a time, as `run_all` does them.

    # Returns

    `float`
        When the last one ends.
    """
    clock, done = 0.0, set[str]()
    waiting, running = list(tasks), list[Tuple[float, str]]()
    while waiting or running:
        ready = [task for task in waiting if done >= set(task.needs)]
        for task in ready[: jobs - len(running)]:
            waiting.remove(task)
            heapq.heappush(running, (clock + seconds[task.name], task.name))
        clock, name = heapq.heappop(running)
        done.add(name)
    return clock


def tell_time(tasks: Sequence[Task], seconds: Mapping[str, float], jobs: int) -> None:
    """Says how much there is to do, if anything is, and about how long that takes."""
    undone = sum(not task.is_done for task in tasks)
    if undone:
        wall = duration(seconds_until_the_end(tasks, seconds, jobs))
        print(
            f"{undone} of {len(tasks)} steps to go, {jobs} at a time: about {wall} (h:min:s) "
            f"where each has {OF_CORE}",
            flush=True,
        )
