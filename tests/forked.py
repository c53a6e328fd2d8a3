"""Processes that cost no imports: copies of the one that runs the tests."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

from allennlp import commands

from elmo_scratch.search.tasks import SIGNALS, ProcessGroup

PATIENCE = 300  # seconds


class Ended(NamedTuple):
    """How a process ended."""

    status: int
    """Its exit status, or the negative number of the signal that killed it."""

    errors: str
    """All that it wrote to stderr."""


def raise_signal_once(is_time: Callable[[], bool], number: signal.Signals) -> None:
    """Sends a signal to this process as soon as it is time for it, whatever the process does."""

    def wait() -> None:
        while not is_time():
            time.sleep(0.001)
        os.kill(os.getpid(), number)

    threading.Thread(target=wait, daemon=True).start()


def run_forked(function: Callable[[], object], errors_file: Path) -> Ended:
    """Calls `function` in a copy of this process, the stderr of which goes to a file."""

    def run() -> None:
        sys.stderr = open(errors_file, "w", encoding="utf-8", buffering=1)
        function()

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join(PATIENCE)
    if process.exitcode is None:
        process.kill()
        process.join()
    assert process.exitcode is not None
    return Ended(process.exitcode, errors_file.read_text(encoding="utf-8"))


class ForkedAllennlp(ProcessGroup):
    """
    Takes the place of `ProcessGroup` for commands of `allennlp`, which run in a copy of this
    process: each would need seconds of a processor to import what is imported here. What is read
    from the environment at an import, such as `OMP_NUM_THREADS`, stays as it is here.
    """

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        assert list(command[:3]) == [sys.executable, "-m", "allennlp"]
        output = open(log, "w", encoding="utf-8", buffering=1)

        def run() -> None:
            os.setpgid(0, 0)
            for number in SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
            sys.stdout = sys.stderr = output
            os.environ.clear()
            os.environ.update(environment)
            sys.argv = ["allennlp", *command[3:]]
            commands.main("allennlp")

        copy = multiprocessing.get_context("fork").Process(target=run)
        copy.start()
        assert copy.pid is not None
        # Whichever of the two comes first: the group must be there before anybody kills it.
        with suppress(OSError):
            os.setpgid(copy.pid, copy.pid)
        output.close()
        self._process: Any = _Copy(copy)


class _Copy:
    """A process by the names of `subprocess.Popen`."""

    def __init__(self, process: ForkProcess) -> None:
        self._process = process
        self.pid = process.pid
        self.returncode: Optional[int] = None

    def poll(self) -> Optional[int]:
        self.returncode = self._process.exitcode
        return self.returncode

    def wait(self) -> None:
        self._process.join()
