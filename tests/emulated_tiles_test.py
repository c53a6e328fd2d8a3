"""Products by tiles (AMX) pass their tests on processors without them, where tiles are emulated."""

from pathlib import Path

import pytest

from elmo_scratch.kernels.library import INSTRUCTIONS, LIBRARY, Instructions
from tests.rebuilt import EMULATED_TILES, Rebuilt

TESTS = [
    "tests/kernels/lstm/stack_test.py",
    "tests/kernels/lstm/native_aligned_test.py",
    "tests/kernels/lstm/native_test.py",
    "tests/kernels/char_convolution_test.py",
    "tests/kernels/linear",
    "tests/kernels/multiplied_gradients_test.py",
    "tests/kernels/weight_gradients_test.py",
    "tests/kernels/panels_test.py",
    "tests/equal_vectors_test.py",
]
"""The tests of all that AMX computes."""


@pytest.mark.exhaustive
@pytest.mark.skipif(LIBRARY is None, reason="nothing was compiled here")
@pytest.mark.skipif(
    INSTRUCTIONS != Instructions.BFLOAT16,
    reason="tiles need no emulation here, or more than this processor has is missing",
)
def test_products_by_tiles_pass_their_tests(tmp_path: Path) -> None:
    rebuilt = Rebuilt(tmp_path, ["-include", str(EMULATED_TILES)])

    def run(*arguments: str) -> str:
        done = rebuilt.run(*arguments, instructions=Instructions.TILES.name)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    show = "from elmo_scratch.kernels.library import INSTRUCTIONS; print(int(INSTRUCTIONS))"
    assert int(run("-c", show)) == Instructions.TILES
    few = ["-m", "not exhaustive"]
    told = run("-m", "pytest", "-rs", "-p", "no:cacheprovider", *few, *TESTS)
    assert " passed" in told
    assert "no tiles" not in told and "nothing is compiled" not in told
