"""Processes of trainings: started as groups, and ended whole by signals."""

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
"""Ctrl-C, `kill`, and a terminal that is closed, which Windows doesn't tell."""


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """
    Lets each of the signals that is not ignored interrupt the block, and so end its trainings.

    # Raises

    KeyboardInterrupt
        Where a signal comes; `Terminated` where it is not that of Ctrl-C.
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
    """Interrupts, and lets no further signal interrupt while the trainings are being ended."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)


PROCESSES = Path("/proc")
"""Where Linux tells of processes."""


class ProcessGroup:
    """
    Starts a command in a session of its own, so that it can be ended with all that it starts.

    # Parameters

    command : `Sequence[str]`
        The program and its arguments.
    log : `Path`
        The file that gets what it prints.
    environment : `Mapping[str, str]`
        All its variables.
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
        """The number of its first process, and of the group of all."""
        return self._process.pid

    @property
    def status(self) -> Optional[int]:
        """
        0 if it has ended well, `None` if it has not ended, less than 0 if a signal ended it. All
        that it started ends with it where it has not ended well.
        """
        was_running = self._process.returncode is None
        status = self._process.poll()
        if was_running and status:
            # At once: later the number may be another group's.
            self._kill_all()
        return status

    def kill(self) -> None:
        """Ends it, if it is not over, and doesn't wait for that."""
        if self.status is None:
            self._kill_all()

    def _kill_all(self) -> None:
        """Ends whoever there is of the group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Ends it, if it is not over."""
        self.kill()
        self._process.wait()


def stop_left_over(pid: int, folder: Path) -> None:
    """
    Ends a group whose starter was killed, if any of it still runs: it would go on writing to its
    folder.

    # Parameters

    pid : `int`
        What `ProcessGroup.pid` was. Another group may have this number by now.
    folder : `Path`
        A word of the command: where it writes to.
    """
    if any(f" {folder} " in f" {command} " for command in _running_in(pid)):
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        while _running_in(pid):
            time.sleep(0.05)


def _running_in(group: int) -> List[str]:
    """The command lines of the processes of a group that are more than an entry in a table."""
    running = _told_by_files(group) if PROCESSES.is_dir() else _told_by_ps(group)
    return [command for state, command in running if state[:1] != "Z"]


def _told_by_files(group: int) -> Iterator[Tuple[str, str]]:
    """State and command line of each process of a group, on Linux."""
    for entry in PROCESSES.iterdir():
        # Processes come and go.
        with suppress(OSError):
            if entry.name.isdecimal():
                stat = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                state, _, its_group = stat[:3]
                if int(its_group) == group:
                    command = os.fsdecode((entry / "cmdline").read_bytes())
                    yield state.decode(), command.replace("\0", " ")


def _told_by_ps(group: int) -> Iterator[Tuple[str, str]]:
    """The same where there are no files about processes: on a Mac."""
    listing = ["ps", "-A", "-ww", "-o", "pgid=,state=,command="]
    for line in subprocess.run(listing, capture_output=True, text=True).stdout.splitlines():
        its_group, state, command = line.split(None, 2)
        if int(its_group) == group:
            yield state, command
