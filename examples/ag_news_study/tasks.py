"""Commands that wait for each other, run several at a time, and are not run again when done."""

import os
import subprocess
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Set

from tqdm import tqdm


class Task(NamedTuple):
    """
    One command.

    # Parameters

    name : `str`
        Tells it from the others.
    part : `str`
        The part of the study that it belongs to; empty for what only prepares others.
    row : `str`
        The row of that part's table; empty likewise.
    command : `List[str]`
        The program and its arguments.
    variables : `Dict[str, str]`
        Of the environment, beside those there are.
    folder : `Path`
        Where it writes, and where `log.txt` and, when it has ended well, `done` are put.
    needs : `List[str]`
        The names of tasks that must be done before.
    """

    name: str
    part: str
    row: str
    command: List[str]
    variables: Dict[str, str]
    folder: Path
    needs: List[str]

    @property
    def is_done(self) -> bool:
        """Whether it has ended well, now or in an earlier run."""
        return (self.folder / "done").exists()


def run_all(tasks: Sequence[Task], jobs: int) -> List[str]:
    """
    # Parameters

    tasks : `Sequence[Task]`
        What is to be done.
    jobs : `int`
        How many at a time, each with its share of the cores.

    # Returns

    `List[str]`
        The names of those that failed, or need one that failed.
    """
    done = {task.name for task in tasks if task.is_done}
    waiting = [task for task in tasks if task.name not in done]
    failed: Set[str] = set()
    running: Dict[Future[bool], Task] = {}
    threads = max((os.cpu_count() or 1) // jobs, 1)
    with ThreadPoolExecutor(jobs) as pool, tqdm(total=len(tasks), initial=len(done)) as progress:
        while waiting or running:
            lost = [task for task in waiting if failed & set(task.needs)]
            failed.update(task.name for task in lost)
            ready = [task for task in waiting if task not in lost and done >= set(task.needs)]
            for task in ready:
                running[pool.submit(_run, task, threads)] = task
            waiting = [task for task in waiting if task not in lost and task not in ready]
            if not running:
                continue
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                task = running.pop(future)
                (done if future.result() else failed).add(task.name)
                progress.update()
    return sorted(failed)


def _run(task: Task, threads: int) -> bool:
    """Runs one, and says whether it ended well."""
    task.folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **task.variables, "OMP_NUM_THREADS": str(threads)}
    with open(task.folder / "log.txt", "w", encoding="utf-8") as log:
        ended = subprocess.run(
            task.command, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False
        )
    if ended.returncode:
        tqdm.write(f"{task.name} failed: see {task.folder / 'log.txt'}")
        return False
    (task.folder / "done").touch()
    return True
