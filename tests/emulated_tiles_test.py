"""Products by tiles (AMX) pass their tests on processors without them, where tiles are emulated."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_scratch.native_library import INSTRUCTIONS, LIBRARY, SWITCH, Instructions

ROOT = Path(__file__).parents[1]
EMULATED_TILES = Path(__file__).parent / "emulated_tiles.h"
NEEDED = ["elmo_scratch", "elmo_scratch_compat", "fixtures", "tests", "setup.py", "pyproject.toml"]
"""Of the checkout, for the tests below."""

TESTS = [
    "tests/modules/lstms/compiled_reading_test.py",
    "tests/modules/lstms/compiled_run_test.py",
    "tests/modules/lstms/filled_run_test.py",
    "tests/modules/compiled_convolution_test.py",
    "tests/modules/products",
    "tests/equal_vectors_test.py",
]
"""Of all that tiles do."""


@pytest.mark.skipif(LIBRARY is None, reason="nothing was compiled here")
@pytest.mark.skipif(
    INSTRUCTIONS != Instructions.BFLOAT16,
    reason="tiles need no emulation here, or more than this processor has is missing",
)
def test_products_by_tiles_pass_their_tests(tmp_path: Path) -> None:
    for name in NEEDED:
        if (ROOT / name).is_dir():
            unneeded = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(ROOT / name, tmp_path / name, ignore=unneeded)
        else:
            shutil.copy(ROOT / name, tmp_path)
    flags = f"-include {EMULATED_TILES}"
    environment = dict(os.environ, CFLAGS=flags, CXXFLAGS=flags, PYTHONPATH=str(tmp_path))
    environment[SWITCH] = Instructions.TILES.name

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("setup.py", "build_ext", "--inplace")
    show = "from elmo_scratch.native_library import INSTRUCTIONS; print(int(INSTRUCTIONS))"
    assert int(run("-c", show)) == Instructions.TILES
    told = run("-m", "pytest", "-rs", "-p", "no:cacheprovider", *TESTS)
    assert " passed" in told and "no tiles" not in told
