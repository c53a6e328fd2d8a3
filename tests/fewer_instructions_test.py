"""Compiled code for processors that can less than this one passes its tests, too."""

import os
import subprocess
import sys

import pytest

from elmo_scratch.native_library import INSTRUCTIONS, SWITCH, Instructions
from tests import PROJECT_ROOT

TESTS = [
    "tests/modules/lstms/compiled_reading_test.py",
    "tests/modules/lstms/compiled_run_test.py",
    "tests/modules/lstms/filled_run_test.py",
    "tests/modules/lstms/kept_run_test.py",
    "tests/modules/lstms/projected_lstm_test.py",
    "tests/modules/compiled_convolution_test.py",
    "tests/modules/products/panels_test.py",
    "tests/equal_vectors_test.py",
]
"""Of all that is compiled for several instructions."""


@pytest.mark.parametrize("most", [Instructions.AVX2, Instructions.AVX512])
def test_it_passes_its_tests_with_fewer_instructions(most: Instructions) -> None:
    if INSTRUCTIONS <= most:
        pytest.skip("this processor has no more than these")
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", *TESTS],
        cwd=PROJECT_ROOT,
        env={**os.environ, SWITCH: most.name.lower()},
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "instructions for bfloat16" in told.stdout and "there is no compiled" not in told.stdout
