"""
Commands that wait for each other, run several at a time, and are not run again when done. Each is a
process group, started and killed as a whole.
"""

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import with_overrides
from filelock import FileLock, Timeout
from tqdm import tqdm

from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.files.machine import num_processors
from elmo_scratch.files.signals import Terminated

SECONDS = 0.1
"""How often it is looked whether a command has ended."""

LINE = "{n_fmt} of {total_fmt} done, {elapsed}{postfix}"
"""What is told meanwhile. Tasks take seconds or hours, so that the bar's guess would mislead."""

EPOCH = re.compile(r"^epoch (\d+ of \d+) ", re.MULTILINE)
"""Stands in the log of a training after each epoch."""

TAIL = 4096
"""So many bytes of a log's end are looked through for it."""


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
        Where it writes, and where `log.txt`, `task.json` and, when it has ended well, `done` are
        put.
    needs : `List[str]`
        The names of tasks that must be done before.
    settings : `Any`
        What decides on the result, as JSON.
    is_training : `bool`, optional (default = `False`)
        Whether it is a training into `folder/run`, which goes on from what it saved there last.
    """

    name: str
    part: str
    row: str
    command: List[str]
    variables: Dict[str, str]
    folder: Path
    needs: List[str]
    settings: Any
    is_training: bool = False

    @property
    def is_done(self) -> bool:
        """Whether it has ended well, now or in an earlier run."""
        return (self.folder / "done").exists()

    def seconds(self) -> float:
        """What it has taken so far, in all its runs."""
        return float(self._record().get("seconds", 0.0))

    def is_another(self) -> bool:
        """Whether its folder holds what other settings have made."""
        return bool(self._record()) and self._record()["settings"] != self.settings

    def fingerprint(self) -> str:
        """The same one for the same settings, in any folder and on any machine."""
        text = json.dumps(self.settings, sort_keys=True)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def command_now(self) -> List[str]:
        """What starts it, or goes on with it, as its folder is."""
        if not self.is_training:
            return self.command
        is_started = any((self.folder / "run").glob("model_state_*.th"))
        return [*self.command, "--recover" if is_started else "--force"]

    def stop_left_over(self) -> None:
        """Ends what a study that was killed has left running."""
        pid = self._record().get("pid")
        for word in self.command:
            if pid is not None and word.startswith(str(self.folder)):
                stop_left_over(pid, Path(word))

    def add_seconds(self, seconds: float, pid: Optional[int] = None) -> None:
        """Writes down what it is, that it has taken so much longer, and which process runs it."""
        record = {"settings": self.settings, "seconds": self.seconds() + seconds, "pid": pid}
        with atomic_write(self.folder / "task.json") as part:
            part.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")

    def _record(self) -> Dict[str, Any]:
        """The result that an earlier run has written, if there is one."""
        try:
            record: Dict[str, Any] = json.loads((self.folder / "task.json").read_text("utf-8"))
        except FileNotFoundError:
            return {}
        return record


class TrainingConfigs:
    """Evaluates the configs of trainings, each file once: Jsonnet takes a tenth of a second."""

    def __init__(self) -> None:
        self._evaluated: Dict[Tuple[Path, Tuple[Tuple[str, str], ...]], str] = {}

    def changed(
        self, config: Path, overrides: Mapping[str, object], variables: Mapping[str, str]
    ) -> Dict[str, Any]:
        """
        # Parameters

        config : `Path`
            A config in Jsonnet.
        overrides : `Mapping[str, object]`
            What is changed in it, by keys such as `"trainer.num_epochs"`.
        variables : `Mapping[str, str]`
            The variables of the environment that it reads, where they are not those there are.

        # Returns

        `Dict[str, Any]`
            What `allennlp train --overrides` trains by.

        # Raises

        ConfigurationError
            If the config can't be read, or has no place for an override.
        """
        text = json.dumps(overrides)
        key = (config, tuple(sorted(variables.items())))
        try:
            if key not in self._evaluated:
                evaluated = Params.from_file(config, ext_vars=dict(variables)).as_dict(quiet=True)
                self._evaluated[key] = json.dumps(evaluated)
            changes = json.loads(text, parse_float=_number)
            changed: Dict[str, Any] = with_overrides(json.loads(self._evaluated[key]), changes)
        except (RuntimeError, ValueError) as error:
            raise ConfigurationError(
                f"{config} can't be trained with the overrides {text}: {error}"
            ) from None
        return changed


def _number(text: str) -> float:
    """As Jsonnet has it, which knows no difference between 1.0 and 1."""
    number = float(text)
    return int(number) if number.is_integer() else number


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Adds the argument `--jobs`, as `run_all` takes it."""
    parser.add_argument(
        "--jobs",
        type=int,
        default=num_processors(),
        help="trainings at a time, each with its share of the processors (default: one each)",
    )


def check_settings(tasks: Sequence[Task], parser: argparse.ArgumentParser) -> None:
    """Ends the program by a word from `parser` if a folder holds what other settings have made."""
    others = [task for task in tasks if task.is_another()]
    if others:
        parser.error(
            f"{others[0].folder} holds what other settings or texts have made ({len(others)} of "
            f"{len(tasks)} such). Take another folder, or remove those"
        )


@contextmanager
def study_in(folder: Path, parser: argparse.ArgumentParser) -> Iterator[None]:
    """
    A program's work in a folder, which is made if it isn't there. The program ends by `SystemExit`:
    with status 2 and a word from `parser` if `folder` is a file, or another program works there; if
    a signal interrupts it, with 128 and the number of the signal; with 1 and the reason if the
    system has an error.
    """
    if folder.exists() and not folder.is_dir():
        parser.error(f"expected a folder, but {folder} is none")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0), interrupted_by_signals():
            yield
    except Timeout:
        parser.error(f"another study works in {folder}")
    except KeyboardInterrupt as error:
        print("interrupted: the same command goes on with it", file=sys.stderr)
        sys.exit(128 + (error.number if isinstance(error, Terminated) else signal.SIGINT))
    except OSError as error:
        sys.exit(f"{error}: the same command goes on with it")


class Undone(NamedTuple):
    """
    # Parameters

    failed : `List[str]`
        The names of tasks that did not end well.
    lost : `List[str]`
        Of those that were not begun, since they need one that failed.
    """

    failed: List[str]
    lost: List[str]


def run_all(tasks: Sequence[Task], jobs: int) -> Undone:
    """
    # Parameters

    tasks : `Sequence[Task]`
        What is to be done.
    jobs : `int`
        How many at a time, at most, each with its share of the processors, where
        `OMP_NUM_THREADS` doesn't say how many it has.

    # Returns

    `Undone`
    """
    done = {task.name for task in tasks if task.is_done}
    waiting = [task for task in tasks if task.name not in done]
    failed: Set[str] = set()
    lost: Set[str] = set()
    running: List[_Running] = []
    cores = num_processors()
    told = 0.0
    # A terminal has a line that is written anew, a file one a minute.
    every = 1.0 if sys.stderr.isatty() else 60.0
    with tqdm(
        total=len(tasks),
        initial=len(done),
        bar_format=LINE,
        mininterval=every,
        disable=not waiting,
    ) as progress:
        try:
            while waiting or running:
                for task in waiting[:]:
                    if (failed | lost) & set(task.needs):
                        waiting.remove(task)
                        lost.add(task.name)
                        progress.update()
                ready = [task for task in waiting if done >= set(task.needs)]
                # What all others wait for has the cores alone.
                threads = max(cores // max(1, min(jobs, len(running) + len(ready))), 1)
                for task in ready[: jobs - len(running)]:
                    waiting.remove(task)
                    running.append(_Running(task, threads))
                    told = 0.0
                if time.monotonic() - told >= every:
                    progress.set_postfix_str("; ".join(one.state() for one in running))
                    told = time.monotonic()
                time.sleep(SECONDS)
                for one in [one for one in running if one.has_ended()]:
                    running.remove(one)
                    (done if one.end() else failed).add(one.task.name)
                    progress.update()
        finally:
            # All of them, before anything that could fail.
            for one in running:
                one.kill()
            for one in running:
                one.stop()
    return Undone(sorted(failed), sorted(lost))


class _Running:
    """A task that has been started."""

    def __init__(self, task: Task, threads: int) -> None:
        self.task = task
        self._started = time.monotonic()
        task.folder.mkdir(parents=True, exist_ok=True)
        task.stop_left_over()
        environment = {"OMP_NUM_THREADS": str(threads), **os.environ, **task.variables}
        self._processes = ProcessGroup(task.command_now(), task.folder / "log.txt", environment)
        try:
            task.add_seconds(0.0, self._processes.pid)
        except BaseException:
            # Nobody would know of it.
            self.kill()
            raise

    def state(self) -> str:
        """Its name, and the last epoch that its log tells of."""
        with (self.task.folder / "log.txt").open("rb") as log:
            log.seek(max(log.seek(0, os.SEEK_END) - TAIL, 0))
            epochs = EPOCH.findall(log.read().decode("utf-8", errors="replace"))
        return f"{self.task.name} (epoch {epochs[-1]})" if epochs else self.task.name

    def has_ended(self) -> bool:
        """Whether it is over, well or not."""
        return self._processes.status is not None

    def end(self) -> bool:
        """Says whether it ended well, and writes that down."""
        self.task.add_seconds(time.monotonic() - self._started)
        if self._processes.status:
            tqdm.write(f"{self.task.name} failed: see {self.task.folder / 'log.txt'}")
            return False
        (self.task.folder / "done").touch()
        return True

    def kill(self) -> None:
        """Ends it with all that it started, if it is not over."""
        self._processes.kill()

    def stop(self) -> None:
        """Ends it. What it has saved stays, and how long it took, if there is room for that."""
        self._processes.stop()
        with suppress(OSError):
            self.task.add_seconds(time.monotonic() - self._started)


SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
"""Ctrl-C, `kill`, and a closed terminal, for which Windows has no signal."""


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """
    Lets SIGINT, SIGTERM and SIGHUP interrupt the block, which then ends its trainings. Signals that
    are ignored outside stay ignored.

    # Raises

    KeyboardInterrupt
        If Ctrl-C comes; for another signal its subclass `Terminated`.
    """
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:  # as `nohup` does
            signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, _: Any) -> None:
    """Interrupts, and ignores further signals while the trainings are being killed."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


PROCESSES = Path("/proc")
"""The folder in which Linux lists processes."""


class ProcessGroup:
    """
    Starts a command in a session of its own, so that all its processes can be killed together. The
    file `log` gets its output; `environment` replaces the current one.
    """

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The id of the first process, and of the group."""
        return self._process.pid

    @property
    def status(self) -> Optional[int]:
        """
        The exit status: `None` while the command runs, negative if a signal ended it. If the
        command has failed, the rest of its group is killed.
        """
        was_running = self._process.returncode is None
        status = self._process.poll()
        if was_running and status:
            # At once: later the id may belong to another group.
            self._kill_all()
        return status

    def kill(self) -> None:
        """Kills the group, if the command still runs, and doesn't wait for its end."""
        if self.status is None:
            self._kill_all()

    def _kill_all(self) -> None:
        """Kills all processes of the group that there are."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kills the group, if the command still runs, and waits for its end."""
        self.kill()
        self._process.wait()


def stop_left_over(pid: int, folder: Path) -> None:
    """
    Kills a process group whose starter was killed: it would go on writing to its folder. `pid` was
    its `ProcessGroup.pid`. Since another group may have the id by now, `folder` must be a word of
    the group's command.
    """
    if any(f" {folder} " in f" {command} " for command in _running_in(pid)):
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        while _running_in(pid):
            time.sleep(0.05)


def _running_in(group: int) -> List[str]:
    """Returns the command lines of a group's processes, zombies left out."""
    running = _told_by_files(group) if PROCESSES.is_dir() else _told_by_ps(group)
    return [command for state, command in running if state[:1] != "Z"]


def _told_by_files(group: int) -> Iterator[Tuple[str, str]]:
    """Yields state and command line of each process of a group, from `/proc` of Linux."""
    for entry in PROCESSES.iterdir():
        # A process may end while its files are read.
        with suppress(OSError):
            if entry.name.isdecimal():
                stat = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                state, _, its_group = stat[:3]
                if int(its_group) == group:
                    command = os.fsdecode((entry / "cmdline").read_bytes())
                    yield state.decode(), command.replace("\0", " ")


def _told_by_ps(group: int) -> Iterator[Tuple[str, str]]:
    """Yields state and command line of each process of a group, by `ps`, for a Mac."""
    listing = ["ps", "-A", "-ww", "-o", "pgid=,state=,command="]
    for line in subprocess.run(listing, capture_output=True, text=True).stdout.splitlines():
        its_group, state, command = line.split(None, 2)
        if int(its_group) == group:
            yield state, command
