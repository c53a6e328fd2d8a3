"""Runs a function in a copy of this process in which one call that changes files goes wrong."""

import ctypes
import errno
import gc
import json
import multiprocessing
import os
import shutil
import subprocess
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from allennlp.common.checks import ConfigurationError

COMPILER = shutil.which("cc")
"""`None` where nothing can be compiled."""

PATIENCE = 120
"""Seconds after which a copy of this process counts as hanging."""


class Kind(IntEnum):
    """What happens at the chosen call, as `shim.c` numbers it."""

    NOTHING = 0
    FAIL_ONCE = 1
    FILL_DISK = 2
    KILL_BEFORE = 3
    KILL_AFTER = 4


class Fault(NamedTuple):
    """A kind of fault, its name, and the errno of a call that fails once."""

    name: str
    kind: Kind
    number: int = 0

    @property
    def is_kill(self) -> bool:
        return self.kind in (Kind.KILL_BEFORE, Kind.KILL_AFTER)


NO_FAULT = Fault("no fault", Kind.NOTHING)
"""Only lists the calls."""

FAULTS = [
    Fault("full disk", Kind.FILL_DISK),
    Fault("ENOSPC", Kind.FAIL_ONCE, errno.ENOSPC),
    Fault("EIO", Kind.FAIL_ONCE, errno.EIO),
    Fault("EDQUOT", Kind.FAIL_ONCE, errno.EDQUOT),
    Fault("kill before", Kind.KILL_BEFORE),
    Fault("kill after", Kind.KILL_AFTER),
]
"""
A full disk takes half of what is written, and from then on nothing. The three errors come once: the
next call goes well.
"""


class Outcome(NamedTuple):
    """How a run ended, and the calls that it made, each as `"write\\t/path"`."""

    status: int
    """The exit status of the process, or the negative number of the signal that killed it."""

    error: Optional[str]
    """The error that the function raised, as a line, if any."""

    is_documented: bool
    """Whether it is an error that a user is told about, and not one of the code."""

    calls: List[str]


@lru_cache(maxsize=None)
def _library() -> Path:
    """Compiles `shim.c`, once for a process and its copies."""
    assert COMPILER is not None
    path = Path(mkdtemp(prefix="faults_")) / "shim.so"
    source = Path(__file__).with_name("shim.c")
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([COMPILER, *flags, "-o", str(path), str(source), "-ldl"], check=True)
    return path


def run_faulty(
    function: Callable[[], object],
    folder: Path,
    scratch: Path,
    number: int = 0,
    fault: Optional[Fault] = None,
) -> Outcome:
    """
    Calls `function` in a copy of this process. Of the calls that change files below `folder`, the
    one of that number, from 1 on, has the fault. Without a fault the calls aren't listed. `scratch`
    is a folder for what the copy says.
    """
    library, below = _library(), os.path.realpath(folder)
    said, calls, ended = scratch / "said.txt", scratch / "calls.txt", scratch / "ended.json"
    ended.unlink(missing_ok=True)

    def run() -> None:
        # A collection would touch, and so copy, the memory of all that the parent has imported.
        gc.freeze()
        for stream in (1, 2):
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)
        log = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        if fault is not None:
            ctypes.CDLL(str(library)).fault_arm(
                os.fsencode(below), ctypes.c_long(number), fault.kind.value, fault.number, log
            )
        error: Optional[BaseException] = None
        try:
            function()
        except BaseException as raised:
            error = raised
        told = {
            "error": None if error is None else f"{type(error).__name__}: {error}",
            "is_documented": isinstance(error, (ConfigurationError, OSError)),
        }
        ended.write_text(json.dumps(told), encoding="utf-8")

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join(PATIENCE)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise TimeoutError(f"a run with {fault} at call {number} hangs")
    assert process.exitcode is not None
    told: Dict[str, Any] = {"error": None, "is_documented": False}
    if ended.exists():
        told = json.loads(ended.read_text(encoding="utf-8"))
    made = calls.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return Outcome(process.exitcode, **told, calls=made)
