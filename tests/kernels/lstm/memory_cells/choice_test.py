import os
import platform
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
import torch

from elmo_scratch.kernels.library import SWITCH
from elmo_scratch.kernels.lstm import cells
from elmo_scratch.kernels.lstm.cells import CompiledMemoryCells, PlainMemoryCells, memory_cells_for

COMPILER = (os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++").split()[0]
"""What `setup.py` compiles by."""


def is_too_old() -> bool:
    """Whether this processor lacks the instructions that are compiled for."""
    about = Path("/proc/cpuinfo")
    return platform.machine() == "x86_64" and "avx2" not in about.read_text(encoding="utf-8")


def test_where_there_is_a_compiler_its_code_is_used() -> None:
    if sys.platform != "linux" or shutil.which(COMPILER) is None or os.environ.get(SWITCH) == "0":
        pytest.skip("there is no compiler here, or it was asked to do without")
    if is_too_old():
        pytest.skip("this processor is from before 2013")
    for dtype in (torch.float32, torch.bfloat16):
        assert isinstance(memory_cells_for(dtype, torch.zeros(1, 1)), CompiledMemoryCells)


def test_where_there_is_none_pytorchs_operations_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "COMPILED", None)
    assert isinstance(memory_cells_for(torch.float32, torch.zeros(1, 1)), PlainMemoryCells)


@pytest.mark.parametrize(
    "dtype, cell",
    [
        (torch.float16, torch.zeros(1, 1).half()),
        (torch.double, torch.zeros(1, 1).double()),
        (torch.bfloat16, torch.zeros(1, 1).bfloat16()),
        (torch.float32, torch.zeros(1, 1).double()),
        (torch.float32, torch.zeros(1, 1, device="meta")),
    ],
    ids=["half", "double", "bfloat16 memory", "wide memory", "no processor"],
)
def test_what_was_not_compiled_is_left_to_pytorch(dtype: torch.dtype, cell: torch.Tensor) -> None:
    assert isinstance(memory_cells_for(dtype, cell), PlainMemoryCells)
