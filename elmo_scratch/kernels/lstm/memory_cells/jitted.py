"""Memory cells on a GPU."""

import logging
import math
from functools import lru_cache
from typing import Callable, Optional, Sequence

import torch

from elmo_scratch.kernels.lstm.memory_cells.memory_cells import CellOutput, MemoryCells

logger = logging.getLogger(__name__)

LOGISTIC = """
template <typename T> T logistic(T x) { return T(1) / (T(1) + ::exp(-x)); }
"""

LSTM_CELL = """
template <typename T> void lstm_cell(
    T i, T j, T f, T o, T cell, T clip, T& after, T& output
) {
  const T sum = logistic(f) * cell + logistic(i) * ::tanh(j);
  after = sum > clip ? clip : sum < -clip ? -clip : sum;
  output = logistic(o) * ::tanh(after);
}
"""

LSTM_CELL_BACKWARD = """
template <typename T> void lstm_cell_backward(
    T i, T j, T f, T o, T after, T before, T d_output, T d_after, T clip,
    T& d_i, T& d_j, T& d_f, T& d_o, T& d_before
) {
  i = logistic(i);
  j = ::tanh(j);
  f = logistic(f);
  o = logistic(o);
  const T squashed = ::tanh(after);
  T d_cell = d_after + d_output * o * (T(1) - squashed * squashed);
  // As in PyTorch, what lies on the bound has no gradient.
  if (after <= -clip || after >= clip) d_cell = T(0);
  d_i = d_cell * j * (T(1) - i) * i;
  d_j = d_cell * i * (T(1) - j * j);
  d_f = d_cell * before * (T(1) - f) * f;
  d_o = d_output * squashed * (T(1) - o) * o;
  d_before = d_cell * f;
}
"""


class JittedMemoryCells(MemoryCells):
    """
    One kernel, which PyTorch compiles at the first use, in the place of a dozen. It keeps the gates
    as they came, and computes in the type of memory.
    """

    def lstm_cell(
        self, gates: torch.Tensor, cell: torch.Tensor, clip: Optional[float]
    ) -> CellOutput:
        # The kernel takes several times as long to convert them.
        wide = gates.to(cell.dtype)
        after, output = _kernel(LSTM_CELL, 2)(*wide.chunk(4, dim=1), cell, clip=_bound(clip))
        return CellOutput(after, output.to(gates.dtype), gates)

    def lstm_cell_backward(
        self,
        cell_output: CellOutput,
        previous_cell: torch.Tensor,
        clip: Optional[float],
        output_gradient: torch.Tensor,
        cell_gradient: torch.Tensor,
        gates_gradient: torch.Tensor,
    ) -> None:
        dtype = cell_gradient.dtype
        cells = (cell_output.cell.to(dtype), previous_cell.to(dtype))
        gradients = (output_gradient.to(dtype), cell_gradient)
        *gates, before = _kernel(LSTM_CELL_BACKWARD, 5)(
            *cell_output.gates.to(dtype).chunk(4, dim=1), *cells, *gradients, clip=_bound(clip)
        )
        if gates_gradient.dtype == dtype:
            torch.cat(gates, dim=1, out=gates_gradient)
        else:
            gates_gradient.copy_(torch.cat(gates, dim=1))
        cell_gradient.copy_(before)


@lru_cache(maxsize=None)
def kernels_work(device: torch.device) -> bool:
    """
    # Parameters

    device : `torch.device`
        A GPU.

    # Returns

    `bool`
        Whether PyTorch can compile the kernels for it; a warning says if it can't.
    """
    cells, (row,) = JittedMemoryCells(), torch.zeros(1, 1, 5, device=device)
    gates, cell = row[:, :4], row[:, 4:]
    try:
        cell_output = cells.lstm_cell(gates, cell, None)
        cells.lstm_cell_backward(
            cell_output, cell, None, cell, cell.clone(), torch.empty_like(gates)
        )
    except RuntimeError as error:
        logger.warning(
            "PyTorch can't compile a kernel for the memory cells of LSTMs, and its operations take "
            "the kernel's place, more slowly: %s",
            str(error).split("\n", 1)[0],
        )
        return False
    return True


@lru_cache(maxsize=None)
def _kernel(code: str, num_outputs: int) -> Callable[..., Sequence[torch.Tensor]]:
    """Made at its first use: it asks for GPUs, which is too early where this file is imported."""
    jit = torch.cuda.jiterator._create_multi_output_jit_fn
    return jit(LOGISTIC + code, num_outputs, clip=math.inf)


def _bound(clip: Optional[float]) -> float:
    """No bound is one that no number reaches."""
    return math.inf if clip is None else clip
