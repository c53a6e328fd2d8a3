"""Compiled code passes its tests under AddressSanitizer and UndefinedBehaviorSanitizer."""

import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Dict

import pytest

from elmo_scratch.kernels.library import INSTRUCTIONS, LIBRARY, Instructions
from tests.rebuilt import EMULATED_TILES, Rebuilt

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(LIBRARY is None, reason="nothing was compiled here"),
    pytest.mark.timeout(7200),
]

FLAGS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]

TESTS = [
    "tests/kernels/char_convolution_test.py",
    "tests/kernels/lstm/native_aligned_test.py",
    "tests/kernels/panels_test.py",
    "tests/kernels/multiplied_gradients_test.py",
    "tests/kernels/linear/amx_linear_test.py",
]
"""Of what is compiled for each instruction set."""

TESTS_OF_ONE_CODE = [
    "tests/kernels/highway_test.py",
    "tests/kernels/lstm/memory_cells/compiled_test.py",
    "tests/kernels/max_over_time_test.py",
]
"""Of what is compiled once, for all of them."""

BEST = Instructions.TILES if INSTRUCTIONS >= Instructions.BFLOAT16 else INSTRUCTIONS
"""With emulated tiles."""

LOWEST = min(BEST, Instructions.AVX2)
"""Below AVX2 nothing else runs than what is compiled once."""

CHOSEN = ["-m", "not exhaustive", "-k", "not to_the_bit and not large and not few"]
"""Grids and large sizes take long, and sanitizers say nothing about last bits."""

WRITE_TOO_MUCH = """
import torch
from elmo_scratch.kernels.pointwise import CARRY
numbers = [torch.zeros(64) for _ in range(4)]
*inputs, output = (part.data_ptr() for part in numbers)
CARRY[torch.float32](*inputs, 1, {}, output, 1)
print("done")
"""


def sanitizer_libraries() -> str:
    """The libraries that must be loaded before all others."""
    compiler = (sysconfig.get_config_var("CXX") or "c++").split()[0]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    found = []
    # Without the second one AddressSanitizer doesn't find how exceptions are thrown.
    for name in ("libasan.so", "libstdc++.so"):
        asked = [compiler, f"-print-file-name={name}"]
        path = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
        if not Path(path).is_absolute():
            pytest.skip(f"{compiler} has no {name} here")
        found.append(str(Path(path).resolve()))
    return " ".join(found)


@pytest.fixture(scope="module")
def variables() -> Dict[str, str]:
    # Python itself doesn't give back all memory at its end.
    options = "detect_leaks=0"
    return {"LD_PRELOAD": sanitizer_libraries(), "ASAN_OPTIONS": options}


@pytest.fixture(scope="module")
def rebuilt(variables: Dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Rebuilt:
    """With emulated tiles where the rest of that code runs: sanitizers don't see into real ones."""
    has_tiles = INSTRUCTIONS >= Instructions.BFLOAT16
    emulation = ["-include", str(EMULATED_TILES)] if has_tiles else []
    return Rebuilt(tmp_path_factory.mktemp("sanitized"), [*FLAGS, *emulation])


def test_a_number_too_many_is_seen(rebuilt: Rebuilt, variables: Dict[str, str]) -> None:
    done = rebuilt.run("-c", WRITE_TOO_MUCH.format(64), instructions="avx2", **variables)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    done = rebuilt.run("-c", WRITE_TOO_MUCH.format(65), instructions="avx2", **variables)
    assert done.returncode != 0 and "AddressSanitizer: heap-buffer-overflow" in done.stderr


@pytest.mark.parametrize(
    "instructions",
    [level for level in Instructions if level >= LOWEST],
    ids=lambda level: level.name.lower(),
)
def test_nothing_is_done_that_must_not_be(
    instructions: Instructions, rebuilt: Rebuilt, variables: Dict[str, str]
) -> None:
    if instructions > BEST:
        pytest.skip("this processor has no more than these")
    tests = [*TESTS, *TESTS_OF_ONE_CODE] if instructions == LOWEST else TESTS
    arguments = ["-m", "pytest", "-p", "no:cacheprovider", *CHOSEN, *tests]
    done = rebuilt.run(*arguments, instructions=instructions.name, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
