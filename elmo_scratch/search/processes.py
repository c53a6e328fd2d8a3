"""Process groups of trainings: a group is started and killed as a whole."""

import os
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

from elmo_scratch.files.signals import Terminated

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
