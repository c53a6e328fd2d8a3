"""A command with all the processes that it starts."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Mapping, Optional, Sequence

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
        """0 if it has ended well, `None` if it has not ended, less than 0 if a signal ended it."""
        return self._process.poll()

    def kill(self) -> None:
        """Ends it, if it is not over, and doesn't wait for that."""
        if self.status is None:
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Ends it, if it is not over."""
        self.kill()
        self._process.wait()


def stop_left_over(pid: int, folder: Path) -> None:
    """
    Ends a group whose starter was killed, if it still runs: it would go on writing to its folder.

    # Parameters

    pid : `int`
        What `ProcessGroup.pid` was. Another process may have this number by now.
    folder : `Path`
        A word of the command: where it writes to.
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
