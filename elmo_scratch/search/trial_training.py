"""The training of one trial, in a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from elmo_scratch.search.metric import Metric

ALLENNLP = (sys.executable, "-m", "allennlp")
"""What is started."""

RESULT = "metrics.json"
"""What AllenNLP writes last."""

LAST_LINES = 5
"""How many lines of the log of a training tell why it failed."""

PROCESSES = Path("/proc")
"""Where Linux tells of processes."""


class TrialTraining:
    """
    Runs `allennlp train`. What it prints goes to a file beside its folder: the folder must be new.

    # Parameters

    folder : `Path`
        Where the training writes to.
    config : `Path`
        What it trains.
    overrides : `Dict[str, Any]`
        What is different in this trial.
    words : `Sequence[str]`, optional (default = `()`)
        More of the command line.
    num_threads : `int`, optional (default = `None`)
        Of the processor, where `OMP_NUM_THREADS` doesn't say it.
    """

    def __init__(
        self,
        folder: Path,
        config: Path,
        overrides: Dict[str, Any],
        words: Sequence[str] = (),
        num_threads: Optional[int] = None,
    ) -> None:
        self.folder = folder
        self.log = folder.with_name(f"{folder.name}.log")
        self._reported = 0
        environment = dict(os.environ)
        if num_threads is not None:
            environment.setdefault("OMP_NUM_THREADS", str(num_threads))
        with self.log.open("wb") as log:
            # With a session of its own it can be stopped with all the processes that it starts.
            self._process = subprocess.Popen(
                [*ALLENNLP, "train", str(config), "-s", str(folder)]
                + ["--overrides", json.dumps(overrides), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The number of its process, and of the group of all that it starts."""
        return self._process.pid

    def has_ended(self) -> bool:
        """Whether it is over, well or not."""
        return self._process.poll() is not None

    def has_failed(self) -> bool:
        """Whether it is over, but came to no result."""
        return self._process.poll() not in (None, 0) or self._has_no_result()

    def result(self, metric: Metric) -> float:
        """
        # Returns

        `float`
            What a training has reached that has ended well.

        # Raises

        ConfigurationError
            If it measures no such thing.
        """
        return metric.of(self.folder / RESULT)

    def new_epochs(self, metric: Metric) -> Iterator[Tuple[int, float]]:
        """
        # Returns

        `Iterator[Tuple[int, float]]`
            For each epoch since the last call how many there were until then, and the metric.

        # Raises

        ConfigurationError
            If the training measures no such thing.
        """
        for file in _epochs(self.folder)[self._reported :]:
            try:
                value = metric.of(file)
            except json.JSONDecodeError:  # it is being written
                return
            self._reported += 1
            yield self._reported, value

    def stop(self) -> None:
        """Ends it, if it is not over."""
        if not self.has_ended():
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def last_lines(self) -> str:
        """
        # Returns

        `str`
            What it printed last, and what that doesn't tell: the signal that ended it, or that it
            ended well but without a result.
        """
        printed = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        status = self._process.poll()
        if status is not None and status < 0:
            printed.append(f"ended by signal {-status}")
        if self._has_no_result():
            printed.append(f"ended without a whole {RESULT}")
        return "\n".join([line for line in printed if line.strip()][-LAST_LINES:])

    def _has_no_result(self) -> bool:
        """Whether it says that it ended well, but left nothing that can be read."""
        return self._process.poll() == 0 and not _is_json(self.folder / RESULT)


def stop_left_over(pid: int, folder: Path) -> None:
    """
    Ends the training of a search that was killed, if it still runs: it would go on writing to the
    folder.

    # Parameters

    pid : `int`
        What `TrialTraining.pid` was. Another process may have this number by now.
    folder : `Path`
        Where the training writes to.
    """
    if f" {folder} " in f" {_command_of(pid)} ":
        os.killpg(pid, signal.SIGKILL)
        while _is_running(pid):
            time.sleep(0.05)


def _command_of(pid: int) -> str:
    """The words of a process's command line; none of one that is over."""
    if not PROCESSES.is_dir():
        return _listed(pid, "command=")
    try:
        return os.fsdecode((PROCESSES / str(pid) / "cmdline").read_bytes()).replace("\0", " ")
    except OSError:
        return ""


def _is_running(pid: int) -> bool:
    """Whether a process is more than an entry that nobody has asked about."""
    if not PROCESSES.is_dir():
        return _listed(pid, "state=")[:1] not in ("", "Z")
    try:
        state = (PROCESSES / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2]
    except OSError:
        return False
    return state.split()[0] != "Z"


def _listed(pid: int, column: str) -> str:
    """What `ps` knows of a process, where there are no files about it: on a Mac."""
    command = ["ps", "-ww", "-o", column, "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _epochs(folder: Path) -> List[Path]:
    """The metrics of all epochs that are over, in their order."""
    numbers = [re.fullmatch(r"metrics_epoch_(\d+)\.json", file.name) for file in _files(folder)]
    in_order = sorted(int(number[1]) for number in numbers if number)
    return [folder / f"metrics_epoch_{number}.json" for number in in_order]


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _files(folder: Path) -> List[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
