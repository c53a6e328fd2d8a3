"""A copy of a checkout, in which code may be changed and tests run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import List, NamedTuple, Optional, Sequence

from benchmarks.mutable_code import PACKAGES

MARKERS = ["-m", "not install and not large and not exhaustive"]
"""The choice of tests that `make test` makes."""

NO_TESTS = 5
"""The status of pytest if it was told to leave out all tests."""


class Run(NamedTuple):
    """
    How a run of tests ended.

    # Parameters

    passed : `bool`
        Whether no test failed.
    hung : `bool`
        Whether it was ended because it took too long.
    failed : `List[str]`
        The tests that failed, as far as is known.
    output : `str`
        What was printed.
    """

    passed: bool
    hung: bool
    failed: List[str]
    output: str


class Copy:
    """
    A copy of a checkout in which tests run.

    # Parameters

    root : `Path`
        The checkout.
    folder : `Path`
        An empty folder.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        listing = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others"]
        listed = subprocess.run([*listing, "--exclude-standard"], check=True, capture_output=True)
        compiled = [str(path.relative_to(root)) for path in (root / PACKAGES[0]).rglob("*.so")]
        for name in [*listed.stdout.decode("utf-8").split("\0"), *compiled]:
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)

    def write_code(self, file: str, text: str) -> None:
        """Replaces a file, its line ends as they are in the text."""
        path = self.folder / file
        with path.open("w", encoding="utf-8", newline="") as opened:
            opened.write(text)
        # Python knows compiled code by the size of the file and the second of its last change.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def run_tests(
        self, arguments: Sequence[str], timeout: Optional[float] = None, **variables: str
    ) -> Run:
        """Runs pytest, with these environment variables."""
        cache = self.folder / ".pytest_cache"
        shutil.rmtree(cache, ignore_errors=True)
        paths = [str(self.folder), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-q", *MARKERS, *arguments],
                env={**environment, **variables},
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            status: Optional[int] = None
            try:
                status = process.wait(timeout)
            except subprocess.TimeoutExpired:
                pass
            finally:
                # What a test has started, and not ended, ends with it.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            output.seek(0)
            printed = output.read()
        kept = cache / "v" / "cache" / "lastfailed"
        failed = list(json.loads(kept.read_text(encoding="utf-8"))) if kept.is_file() else []
        passed = status in (0, NO_TESTS)
        hung = status is None or not passed and "+++ Timeout +++" in printed  # of pytest-timeout
        return Run(passed, hung, failed, printed)
