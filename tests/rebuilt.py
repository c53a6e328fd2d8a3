"""A copy of the checkout whose compiled code is built with other flags."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List

from elmo_scratch.kernels.library import SWITCH
from tests import PROJECT_ROOT

EMULATED_TILES = Path(__file__).parent / "emulated_tiles.h"
"""To be included before everything else, with the flag `-include`."""

NEEDED = [
    *("elmo_scratch", "elmo_scratch_compat", "fixtures", "tests"),
    *("setup.py", "pyproject.toml", "README.md", "requirements.txt"),
]
"""What the tests of compiled code need of the checkout."""


class Rebuilt:
    """
    # Parameters

    folder : `Path`
        Where the copy will be.
    flags : `List[str]`
        Flags for the compiler, and for the linker where it knows them.
    """

    def __init__(self, folder: Path, flags: List[str]) -> None:
        self.folder = folder
        for name in NEEDED:
            if (PROJECT_ROOT / name).is_dir():
                unneeded = shutil.ignore_patterns("__pycache__", "*.so")
                shutil.copytree(PROJECT_ROOT / name, folder / name, ignore=unneeded)
            else:
                shutil.copy(PROJECT_ROOT / name, folder)
        joined = " ".join(flags)
        linked = " ".join(flag for flag in flags if flag.startswith("-fsanitize"))
        build = [sys.executable, "setup.py", "build_ext", "--inplace"]
        done = self._run(build, {"CFLAGS": joined, "CXXFLAGS": joined, "LDFLAGS": linked})
        assert done.returncode == 0, done.stdout + done.stderr

    def run(
        self, *arguments: str, instructions: str, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """
        # Parameters

        arguments : `str`
            What Python runs in the copy.
        instructions : `str`
            The name of the best instructions that it may use.
        variables : `str`
            Further variables of its environment.
        """
        return self._run([sys.executable, *arguments], {SWITCH: instructions, **variables})

    def _run(self, command: List[str], variables: dict) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "PYTHONPATH": str(self.folder), **variables}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True
        )
