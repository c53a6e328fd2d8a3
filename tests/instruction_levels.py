"""
Runs the numeric tests at each instruction level below that of this processor, all at the same time:

    python -m tests.instruction_levels [arguments for pytest]

The compiled code and the libraries that multiply are held to the level by environment variables.
Each level is one process, which imports and collects once. What can't be run here is named as not
run. `make test` runs the same tests at the highest level.
"""

import os
import subprocess
import sys
from tempfile import TemporaryFile
from typing import IO, Dict, List, NamedTuple

from elmo_scratch.kernels.library import INSTRUCTIONS, SWITCH, Instructions
from tests import PROJECT_ROOT

NUMERIC_TESTS = [
    "tests/kernels",
    "tests/modules",
    "tests/elmo_module_test.py",
    "tests/elmo_state_test.py",
    "tests/equal_vectors_test.py",
]

NOT_NUMERIC = [
    "tests/kernels/native_structs_test.py",
    "tests/modules/masks_test.py",
    "tests/modules/packed_order_test.py",
    "tests/modules/softmaxes/log_uniform_sampler_test.py",
    "tests/modules/state_memory_test.py",
]
"""What only counts, draws or moves numbers: it is the same at each level."""


class Level(NamedTuple):
    """
    A processor that can do less than others.

    # Parameters

    name : `str`
        What it is called.
    instructions : `Instructions`
        The best that its compiled code uses.
    environment : `Dict[str, str]`
        The variables that hold compiled code and libraries to it.
    """

    name: str
    instructions: Instructions
    environment: Dict[str, str]


LEVELS = [
    Level("no compiled code", Instructions.COMMON, {SWITCH: "0"}),
    Level(
        "AVX2, libraries included",
        Instructions.AVX2,
        {
            SWITCH: "avx2",
            "ATEN_CPU_CAPABILITY": "avx2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        },
    ),
    Level(
        "AVX-512 without bfloat16, libraries included",
        Instructions.AVX512,
        {SWITCH: "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
    ),
    Level(
        "AVX-512 with bfloat16, without AMX, libraries included",
        Instructions.BFLOAT16,
        {SWITCH: "bfloat16", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"},
    ),
]


def start_level(level: Level, arguments: List[str], output: IO[str]) -> "subprocess.Popen[str]":
    """
    Starts the numeric tests at this level. What they print, into `output`, names each skipped test
    and why it wasn't run.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
    # The cases that stand for the others: `make test-exhaustive` has those at the highest level.
    command += ["-m", "not exhaustive", *(f"--ignore={file}" for file in NOT_NUMERIC)]
    return subprocess.Popen(
        [*command, *arguments, *NUMERIC_TESTS],
        cwd=PROJECT_ROOT,
        env={**os.environ, **level.environment},
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
    )


def main(arguments: List[str]) -> int:
    """
    # Returns

    `int`
        The exit status: 1 if a test fails at some level.
    """
    if INSTRUCTIONS == Instructions.COMMON:
        # Nothing is compiled for some processors alone, and so there is nothing to do without.
        print("not run: any lower level, as this processor or installation has no compiled code")
        return 0
    running, failed = [], []
    for level in LEVELS:
        if level.instructions >= INSTRUCTIONS:
            print(f"not run: {level.name}: this processor has no more than {INSTRUCTIONS.name}")
            continue
        output = TemporaryFile("w+", encoding="utf-8")
        running.append((level, start_level(level, arguments, output), output))
    for level, tests, output in running:
        print(f"=== {level.name}", flush=True)
        status = tests.wait()
        output.seek(0)
        print(output.read(), flush=True)
        if status != 0:
            failed.append(level.name)
    if INSTRUCTIONS < Instructions.TILES:
        print("not run: AMX: this processor has none")
    for name in failed:
        print(f"failed: {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
