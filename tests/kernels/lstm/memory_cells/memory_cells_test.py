from typing import List, Optional

import pytest
import torch

from elmo_scratch.kernels.lstm import cells
from elmo_scratch.kernels.lstm.cells import MemoryCells

ROWS, CELLS = 5, 37


def there_and_back(
    memory_cells: MemoryCells, dtype: torch.dtype, clip: Optional[float]
) -> List[torch.Tensor]:
    """Memory, outputs and gradients, for the same numbers every time."""
    torch.manual_seed(13)
    gates, cell = torch.randn(ROWS, 4 * CELLS).to(dtype), torch.randn(ROWS, CELLS)
    from_output, from_cell = torch.randn(ROWS, CELLS).to(dtype), torch.randn(ROWS, CELLS)
    gates_gradient = torch.empty_like(gates)
    done = memory_cells.lstm_cell(gates, cell, clip)
    memory_cells.lstm_cell_backward(done, cell, clip, from_output, from_cell, gates_gradient)
    return [done.cell, done.output.float(), from_cell, gates_gradient.float()]


@pytest.mark.skipif(cells.COMPILED is None, reason="the memory cells were not compiled here")
@pytest.mark.parametrize("clip", [None, 0.8])
@pytest.mark.parametrize("dtype, closeness", [(torch.float32, 1e-6), (torch.bfloat16, 1e-2)])
def test_all_kinds_do_the_same(dtype: torch.dtype, closeness: float, clip: Optional[float]) -> None:
    assert cells.COMPILED is not None
    compiled = there_and_back(cells.COMPILED, dtype, clip)
    plain = there_and_back(cells.PLAIN, dtype, clip)
    for ours, expected in zip(compiled, plain, strict=True):
        assert torch.allclose(ours, expected, rtol=closeness, atol=closeness)
        assert ours.any()
