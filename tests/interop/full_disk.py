"""Programs that fill the disk, or come up to a limit as if they had."""

import subprocess
import sys
from pathlib import Path

import pytest

has_such_a_limit = pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")


def printed_by(program: str, folder: Path) -> str:
    """What a program prints in a process of its own, which has to end well and silently."""
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout
