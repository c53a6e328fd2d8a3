import logging
from typing import List, Optional

import pytest
import torch

from elmo_scratch.kernels.lstm import cells as jitted
from elmo_scratch.kernels.lstm.cells import (
    LOGISTIC,
    LSTM_CELL,
    LSTM_CELL_BACKWARD,
    CellOutput,
    JittedMemoryCells,
    MemoryCells,
    PlainMemoryCells,
    kernels_work,
    memory_cells_for,
)
from tests.gpu import needs_gpu

ACTIVE, CELLS = 9, 33

each_clip = pytest.mark.parametrize("clip", [None, 0.4])
each_dtype = pytest.mark.parametrize(
    "dtype, closeness", [(torch.float32, 2e-6), (torch.bfloat16, 2e-2)]
)


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (3 * torch.randn(*shape, device="cuda")).to(dtype)


def test_nobody_looks_for_a_gpu_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> bool:
        raise AssertionError

    monkeypatch.setattr(torch.cuda, "is_available", fail)
    assert isinstance(JittedMemoryCells(), MemoryCells)


@pytest.mark.parametrize("code", [LSTM_CELL, LSTM_CELL_BACKWARD])
def test_pytorch_can_read_the_kernels(code: str) -> None:
    made = torch.cuda.jiterator._create_multi_output_jit_fn(LOGISTIC + code, 2, clip=1.0)
    assert f"{made.kernel_name}(" in code


@needs_gpu
def test_they_are_those_of_a_gpu() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        assert isinstance(memory_cells_for(dtype, random(1, 1)), JittedMemoryCells)
    assert isinstance(memory_cells_for(torch.double, random(1, 1).double()), PlainMemoryCells)


@needs_gpu
@each_clip
@each_dtype
def test_they_are_as_the_plain_ones(
    dtype: torch.dtype, closeness: float, clip: Optional[float]
) -> None:
    gates, before = random(ACTIVE, 4 * CELLS, dtype=dtype), random(ACTIVE, CELLS)
    d_output, d_after = random(ACTIVE, CELLS, dtype=dtype), random(ACTIVE, CELLS)

    def there_and_back(cells: MemoryCells) -> List[torch.Tensor]:
        done: CellOutput = cells.lstm_cell(gates.clone(), before, clip)
        d_before, d_gates = d_after.clone(), torch.empty_like(gates)
        cells.lstm_cell_backward(done, before, clip, d_output, d_before, d_gates)
        return [done.cell, done.output, d_before, d_gates]

    found = zip(there_and_back(JittedMemoryCells()), there_and_back(PlainMemoryCells()))
    for ours, expected in found:
        assert ours.shape == expected.shape and ours.dtype == expected.dtype
        assert torch.allclose(ours, expected, rtol=closeness, atol=closeness)


def test_without_a_compiler_pytorchs_operations_take_their_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(code: str, num_outputs: int) -> None:
        raise RuntimeError("nvrtc: error: failed to open libnvrtc-builtins.so\nin detail")

    monkeypatch.setattr(jitted, "_kernel", fail)
    kernels_work.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert not kernels_work(torch.device("cpu")) and not kernels_work(torch.device("cpu"))
    kernels_work.cache_clear()
    (record,) = caplog.records
    assert record.getMessage().endswith("failed to open libnvrtc-builtins.so")
