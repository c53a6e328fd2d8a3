"""The pointwise part of an LSTM's step: PyTorch, compiled code, and CUDA by TorchScript."""

import ctypes
import logging
import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Callable, NamedTuple, Optional, Sequence

import torch

from elmo_scratch.kernels.library import COUNT, LIBRARY, POINTER, SIZE, functions, is_plain
from elmo_scratch.kernels.pointwise import sigmoid_


class CellOutput(NamedTuple):
    """
    The result of a step for the `active` sentences that have not ended: memory after the step,
    clipped; the input of the projection, of the gates' type; both of shape `(active, cell)`; and
    the gates, shape `(active, 4 * cell)`, in the form that the implementation keeps for its
    backward pass.
    """

    cell: torch.Tensor
    output: torch.Tensor
    gates: torch.Tensor


class MemoryCells(ABC):
    """
    The memory cells of an LSTM:

        c = clip(σ(f) c + σ(i) tanh(j))
        output = σ(o) tanh(c)

    An element's result depends neither on the tensors' shapes, nor on its place in them, nor on the
    number of threads. Abstract.
    """

    @abstractmethod
    def lstm_cell(
        self, gates: torch.Tensor, cell: torch.Tensor, clip: Optional[float]
    ) -> CellOutput:
        """
        Runs one step.

        # Parameters

        gates : `torch.Tensor`
            Shape `(active, 4 * cell)`, in the order i, j, f, o, the forget gate's constant
            included; may be overwritten.
        cell : `torch.Tensor`
            Shape `(active, cell)`: memory before the step.
        clip : `Optional[float]`
            The bound of memory, if there is one.
        """

    @abstractmethod
    def lstm_cell_backward(
        self,
        cell_output: CellOutput,
        previous_cell: torch.Tensor,
        clip: Optional[float],
        output_gradient: torch.Tensor,
        cell_gradient: torch.Tensor,
        gates_gradient: torch.Tensor,
    ) -> None:
        """
        The backward pass through `lstm_cell`, given its result and two of its arguments.

        # Parameters

        output_gradient : `torch.Tensor`
            Shape `(active, cell)`.
        cell_gradient : `torch.Tensor`
            Shape `(active, cell)`, contiguous: the gradient of memory after the step. Overwritten
            with the gradient of memory before it.
        gates_gradient : `torch.Tensor`
            Shape `(active, 4 * cell)`, contiguous: written.
        """


DTYPES = (torch.float32, torch.bfloat16)
"""The types of gates for which there is compiled code. Memory is in float32."""

LSTM_CELL_ARGUMENTS = [POINTER, POINTER, SIZE, SIZE, ctypes.c_float, POINTER, POINTER, COUNT]
LSTM_CELL_BACKWARD_ARGUMENTS = [*[POINTER] * 3, SIZE, SIZE, ctypes.c_float, *[POINTER] * 3, COUNT]
"""The argument types of the compiled functions."""


class CompiledMemoryCells(MemoryCells):
    """
    Memory cells on a CPU, by the compiled `library`. It reads each number once, where every PyTorch
    operation goes through all of them. It keeps the gates before their nonlinearities: recomputing
    those costs less than writing and reading them.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._lstm_cell = functions(library, "open_gates", DTYPES, LSTM_CELL_ARGUMENTS)
        self._lstm_cell_backward = functions(
            library, "open_gates_backward", DTYPES, LSTM_CELL_BACKWARD_ARGUMENTS
        )

    def lstm_cell(
        self, gates: torch.Tensor, cell: torch.Tensor, clip: Optional[float]
    ) -> CellOutput:
        gates, cell = gates.contiguous(), cell.contiguous()
        _check([gates], [cell], [])
        after = torch.empty_like(cell)
        output = torch.empty_like(cell, dtype=gates.dtype)
        self._lstm_cell[gates.dtype](
            gates.data_ptr(),
            cell.data_ptr(),
            *cell.shape,
            math.nan if clip is None else clip,
            after.data_ptr(),
            output.data_ptr(),
            torch.get_num_threads(),
        )
        return CellOutput(after, output, gates)

    def lstm_cell_backward(
        self,
        cell_output: CellOutput,
        previous_cell: torch.Tensor,
        clip: Optional[float],
        output_gradient: torch.Tensor,
        cell_gradient: torch.Tensor,
        gates_gradient: torch.Tensor,
    ) -> None:
        dtype = gates_gradient.dtype
        # Hooks on saved tensors may have changed their types and layouts.
        gates, output_gradient = (
            part.to(dtype).contiguous() for part in (cell_output.gates, output_gradient)
        )
        cell, previous_cell = (
            part.to(torch.float32).contiguous() for part in (cell_output.cell, previous_cell)
        )
        cells = (cell, previous_cell, cell_gradient)
        _check([gates_gradient, gates], cells, [output_gradient])
        self._lstm_cell_backward[dtype](
            gates.data_ptr(),
            previous_cell.data_ptr(),
            cell.data_ptr(),
            *cell.shape,
            math.nan if clip is None else clip,
            output_gradient.data_ptr(),
            cell_gradient.data_ptr(),
            gates_gradient.data_ptr(),
            torch.get_num_threads(),
        )


def _check(
    gates: Sequence[torch.Tensor], cells: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
) -> None:
    """
    Raises a `ValueError` unless shapes, types and layout are such that compiled code stays in
    bounds.
    """
    rows, num_cells = cells[0].shape
    groups = [
        (gates, (rows, 4 * num_cells), gates[0].dtype),
        (cells, (rows, num_cells), torch.float32),
        (outputs, (rows, num_cells), gates[0].dtype),
    ]
    if gates[0].dtype in DTYPES and all(
        tensor.shape == shape and tensor.dtype == dtype and tensor.is_contiguous()
        for tensors, shape, dtype in groups
        for tensor in tensors
    ):
        return
    found = ", ".join(f"{tuple(tensor.shape)} of {tensor.dtype}" for tensor in (*gates, *cells))
    raise ValueError(
        f"expected four gates in float32 or bfloat16 for each memory cell in float32, but got "
        f"gates and memory of shape {found}"
    )


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
    Memory cells on a GPU: one kernel, compiled by PyTorch at its first use, in place of a dozen. It
    keeps the gates before their nonlinearities, and computes in the type of memory.
    """

    def lstm_cell(
        self, gates: torch.Tensor, cell: torch.Tensor, clip: Optional[float]
    ) -> CellOutput:
        # Converting the gates within the kernel would take several times as long.
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
    """Whether PyTorch can compile the kernels for a GPU; a warning says if it can't."""
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
    """
    Compiles a kernel at its first use: compiling looks for GPUs, which is too early at import time.
    """
    jit = torch.cuda.jiterator._create_multi_output_jit_fn
    return jit(LOGISTIC + code, num_outputs, clip=math.inf)


def _bound(clip: Optional[float]) -> float:
    """The clip as a number: infinity for no clip."""
    return math.inf if clip is None else clip


class PlainMemoryCells(MemoryCells):
    """
    Memory cells on any device and in any precision, by PyTorch. It keeps σ(i), tanh(j), σ(f), σ(o),
    in the type of memory.
    """

    def lstm_cell(
        self, gates: torch.Tensor, cell: torch.Tensor, clip: Optional[float]
    ) -> CellOutput:
        dtype = gates.dtype
        gates = gates.to(cell.dtype)
        num_cells = cell.size(1)
        # One pass over all four: tanh(j) = 2σ(2j) - 1.
        squashed = gates[:, num_cells : 2 * num_cells]
        squashed.mul_(2.0)
        sigmoid_(gates)
        squashed.mul_(2.0).sub_(1.0)
        i, j, f, o = gates.chunk(4, dim=1)  # each (active, cell)
        after = torch.mul(f, cell).addcmul_(i, j)
        if clip is not None:
            after.clamp_(-clip, clip)
        return CellOutput(after, tanh(after).mul_(o).to(dtype), gates)

    def lstm_cell_backward(
        self,
        cell_output: CellOutput,
        previous_cell: torch.Tensor,
        clip: Optional[float],
        output_gradient: torch.Tensor,
        cell_gradient: torch.Tensor,
        gates_gradient: torch.Tensor,
    ) -> None:
        aten = torch.ops.aten
        squashed = tanh(cell_output.cell)
        output_gradient = output_gradient.to(squashed.dtype)
        i, j, f, o = cell_output.gates.chunk(4, dim=1)
        cell_gradient += aten.tanh_backward(output_gradient * o, squashed)
        if clip is not None:
            aten.hardtanh_backward(
                cell_gradient, cell_output.cell, -clip, clip, grad_input=cell_gradient
            )
        d_i, d_j, d_f, d_o = gates_gradient.chunk(4, dim=1)
        d_i.copy_(aten.sigmoid_backward(cell_gradient * j, i))
        d_j.copy_(aten.tanh_backward(cell_gradient * i, j))
        d_f.copy_(aten.sigmoid_backward(cell_gradient * previous_cell, f))
        d_o.copy_(aten.sigmoid_backward(squashed.mul_(output_gradient), o))
        cell_gradient *= f


def tanh(numbers: torch.Tensor) -> torch.Tensor:
    """
    The hyperbolic tangent, within rounding, as `2σ(2x) - 1`: on a CPU, PyTorch's `tanh` takes
    several times as long as its `sigmoid`.
    """
    return sigmoid_(numbers.mul(2.0)).mul_(2.0).sub_(1.0)


PLAIN, JITTED = PlainMemoryCells(), JittedMemoryCells()
COMPILED = None if LIBRARY is None else CompiledMemoryCells(LIBRARY)


def memory_cells_for(dtype: torch.dtype, cell: torch.Tensor, *others: torch.Tensor) -> MemoryCells:
    """
    The fastest memory cells for gates of type `dtype`, memory `cell`, and the `others`, the tensors
    that gates are computed from: compiled code on a CPU, a jitted kernel on a GPU, or PyTorch.
    """
    if dtype not in DTYPES or cell.dtype != torch.float32:
        return PLAIN
    if cell.is_cuda:
        return JITTED if is_plain(cell, *others) and kernels_work(cell.device) else PLAIN
    return COMPILED if COMPILED is not None and is_plain(cell, *others, on="cpu") else PLAIN
