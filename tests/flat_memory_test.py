import subprocess
import sys

import pytest

from tests import PROJECT_ROOT
from tests.flat_memory import PATHS


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", PATHS)
def test_memory_is_flat_over_batches_of_varying_text(path: str) -> None:
    command = [sys.executable, "-m", "tests.flat_memory", path]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, cwd=PROJECT_ROOT)
    warm, later = map(float, ran.stdout.split())
    # A leak of 0.6 MB for each number of words would be over 400 MiB.
    assert later - warm < 64
