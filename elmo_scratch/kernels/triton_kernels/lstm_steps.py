"""
The steps of a projected LSTM on a GPU by two Triton kernels each, there and back. It needs Triton,
which PyTorch for CUDA brings along, so import it only where there is a GPU.
"""

import math
from typing import List, Sequence, Tuple

import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction

from elmo_scratch.kernels.linear import PackedLinear
from elmo_scratch.kernels.lstm.run import LstmRun, LstmState


@triton.jit
def _product(left, right, total, IS_INTERPRETED: tl.constexpr):  # type: ignore[no-untyped-def]
    """`total + left · right`. Products are exact, or rounded as the types say; sums are float32."""
    if IS_INTERPRETED:
        # Triton's interpreter can't multiply in bfloat16. The products are the same.
        left, right = left.to(tl.float32), right.to(tl.float32)
    return tl.dot(left, right, total, input_precision="ieee")


@triton.jit
def _tanh(numbers):  # type: ignore[no-untyped-def]
    """The hyperbolic tangent, within rounding."""
    return 2.0 * tl.sigmoid(2.0 * numbers) - 1.0


@triton.jit
def _clipped(numbers, clip):  # type: ignore[no-untyped-def]
    """Between `-clip` and `clip`; NaN stays NaN."""
    return tl.where(numbers > clip, clip, tl.where(numbers < -clip, -clip, numbers))


@triton.jit
def _if_inside(gradient, numbers, clip):  # type: ignore[no-untyped-def]
    """The gradient of `_clipped` numbers: as in PyTorch, what lies on the bound has none."""
    return tl.where((numbers <= -clip) | (numbers >= clip), 0.0, gradient)


@triton.jit
def _gates_and_cells(  # type: ignore[no-untyped-def]
    hidden,
    share,
    weight,
    before,
    after,
    output,
    gates,
    num_rows,
    clip,
    DIM: tl.constexpr,
    CELLS: tl.constexpr,
    KEEPS_GATES: tl.constexpr,
    IS_INTERPRETED: tl.constexpr,
    ROWS_AT_ONCE: tl.constexpr,
    CELLS_AT_ONCE: tl.constexpr,
    DIM_AT_ONCE: tl.constexpr,
):
    """
    The first half of a step, for a block of rows and one of cells: the gates from `hidden`
    `(rows, DIM)`, the inputs' `share` `(rows, 4 * CELLS)` and the recurrent `weight`
    `(4 * CELLS, DIM)`; then the memory cells and what they put out, `(rows, CELLS)`.
    """
    rows = tl.program_id(1) * ROWS_AT_ONCE + tl.arange(0, ROWS_AT_ONCE)[:, None]
    cells = tl.program_id(0) * CELLS_AT_ONCE + tl.arange(0, CELLS_AT_ONCE)[None, :]
    is_here = (rows < num_rows) & (cells < CELLS)
    at_gates = rows * (4 * CELLS) + cells
    i = tl.load(share + at_gates, mask=is_here, other=0.0).to(tl.float32)
    j = tl.load(share + at_gates + CELLS, mask=is_here, other=0.0).to(tl.float32)
    f = tl.load(share + at_gates + 2 * CELLS, mask=is_here, other=0.0).to(tl.float32)
    o = tl.load(share + at_gates + 3 * CELLS, mask=is_here, other=0.0).to(tl.float32)
    for start in range(0, DIM, DIM_AT_ONCE):
        across = start + tl.arange(0, DIM_AT_ONCE)[None, :]
        down = start + tl.arange(0, DIM_AT_ONCE)[:, None]
        read = tl.load(
            hidden + rows * DIM + across, mask=(rows < num_rows) & (across < DIM), other=0.0
        ).to(weight.dtype.element_ty)
        is_weight = (down < DIM) & (cells < CELLS)
        at_weight = weight + cells * DIM + down  # transposed: (DIM, CELLS)
        part = tl.load(at_weight, mask=is_weight, other=0.0)
        i = _product(read, part, i, IS_INTERPRETED)
        part = tl.load(at_weight + CELLS * DIM, mask=is_weight, other=0.0)
        j = _product(read, part, j, IS_INTERPRETED)
        part = tl.load(at_weight + 2 * CELLS * DIM, mask=is_weight, other=0.0)
        f = _product(read, part, f, IS_INTERPRETED)
        part = tl.load(at_weight + 3 * CELLS * DIM, mask=is_weight, other=0.0)
        o = _product(read, part, o, IS_INTERPRETED)
    at_cells = rows * CELLS + cells
    memory = tl.load(before + at_cells, mask=is_here, other=0.0)
    memory = tl.sigmoid(f) * memory + tl.sigmoid(i) * _tanh(j)
    memory = _clipped(memory, clip)
    tl.store(after + at_cells, memory, mask=is_here)
    put_out = tl.sigmoid(o) * _tanh(memory)
    tl.store(output + at_cells, put_out.to(output.dtype.element_ty), mask=is_here)
    if KEEPS_GATES:
        kept = gates.dtype.element_ty
        tl.store(gates + at_gates, i.to(kept), mask=is_here)
        tl.store(gates + at_gates + CELLS, j.to(kept), mask=is_here)
        tl.store(gates + at_gates + 2 * CELLS, f.to(kept), mask=is_here)
        tl.store(gates + at_gates + 3 * CELLS, o.to(kept), mask=is_here)


@triton.jit
def _projection(  # type: ignore[no-untyped-def]
    output,
    weight,
    mask,
    projected,
    hidden,
    num_rows,
    clip,
    DIM: tl.constexpr,
    CELLS: tl.constexpr,
    DROPS: tl.constexpr,
    IS_INTERPRETED: tl.constexpr,
    ROWS_AT_ONCE: tl.constexpr,
    CELLS_AT_ONCE: tl.constexpr,
    DIM_AT_ONCE: tl.constexpr,
):
    """
    The second half of a step, for a block of rows and one of dimensions: cells' `output`
    `(rows, CELLS)` by the projection's `weight` `(DIM, CELLS)`, clipped; and that times a dropout
    `mask`, each `(rows, DIM)`.
    """
    rows = tl.program_id(1) * ROWS_AT_ONCE + tl.arange(0, ROWS_AT_ONCE)[:, None]
    dims = tl.program_id(0) * DIM_AT_ONCE + tl.arange(0, DIM_AT_ONCE)[None, :]
    is_here = (rows < num_rows) & (dims < DIM)
    total = tl.zeros((ROWS_AT_ONCE, DIM_AT_ONCE), dtype=tl.float32)
    for start in range(0, CELLS, CELLS_AT_ONCE):
        across = start + tl.arange(0, CELLS_AT_ONCE)[None, :]
        down = start + tl.arange(0, CELLS_AT_ONCE)[:, None]
        read = tl.load(
            output + rows * CELLS + across, mask=(rows < num_rows) & (across < CELLS), other=0.0
        )
        is_weight = (down < CELLS) & (dims < DIM)
        part = tl.load(weight + dims * CELLS + down, mask=is_weight, other=0.0)
        total = _product(read, part, total, IS_INTERPRETED)
    total = _clipped(total, clip)
    at = rows * DIM + dims
    tl.store(projected + at, total, mask=is_here)
    if DROPS:
        kept = tl.load(mask + at, mask=is_here, other=0.0)
        tl.store(hidden + at, total * kept, mask=is_here)


@triton.jit
def _cells_backward(  # type: ignore[no-untyped-def]
    d_hidden,
    d_output,
    mask,
    projected,
    weight,
    gates,
    after,
    before,
    d_cell,
    d_projected,
    d_gates,
    num_rows,
    cell_clip,
    projection_clip,
    PARTS: tl.constexpr,
    DIM: tl.constexpr,
    CELLS: tl.constexpr,
    DROPS: tl.constexpr,
    IS_INTERPRETED: tl.constexpr,
    ROWS_AT_ONCE: tl.constexpr,
    CELLS_AT_ONCE: tl.constexpr,
    DIM_AT_ONCE: tl.constexpr,
):
    """
    The first half of a step backward, for a block of rows and one of cells: the gradient of the
    step's outputs, from the parts of `d_hidden` `(PARTS, rows, DIM)` and from
    `d_output` `(rows, DIM)`, by the projection's `weight` `(DIM, CELLS)` and through the cells.
    """
    rows = tl.program_id(1) * ROWS_AT_ONCE + tl.arange(0, ROWS_AT_ONCE)[:, None]
    cells = tl.program_id(0) * CELLS_AT_ONCE + tl.arange(0, CELLS_AT_ONCE)[None, :]
    d_put_out = tl.zeros((ROWS_AT_ONCE, CELLS_AT_ONCE), dtype=tl.float32)
    for start in range(0, DIM, DIM_AT_ONCE):
        across = start + tl.arange(0, DIM_AT_ONCE)[None, :]
        down = start + tl.arange(0, DIM_AT_ONCE)[:, None]
        is_read = (rows < num_rows) & (across < DIM)
        at = rows * DIM + across
        gradient = tl.load(d_output + at, mask=is_read, other=0.0)
        for part in range(PARTS):
            gradient += tl.load(d_hidden + part * num_rows * DIM + at, mask=is_read, other=0.0)
        if DROPS:
            gradient *= tl.load(mask + at, mask=is_read, other=0.0)
        done = tl.load(projected + at, mask=is_read, other=0.0)
        gradient = _if_inside(gradient, done, projection_clip)
        # All blocks of these rows have the same: one of them writes it.
        tl.store(d_projected + at, gradient, mask=is_read & (tl.program_id(0) == 0))
        is_weight = (down < DIM) & (cells < CELLS)
        matrix = tl.load(weight + down * CELLS + cells, mask=is_weight, other=0.0)
        gradient = gradient.to(weight.dtype.element_ty)
        d_put_out = _product(gradient, matrix, d_put_out, IS_INTERPRETED)
    is_here = (rows < num_rows) & (cells < CELLS)
    at_gates, at_cells = rows * (4 * CELLS) + cells, rows * CELLS + cells
    i = tl.sigmoid(tl.load(gates + at_gates, mask=is_here, other=0.0).to(tl.float32))
    j = _tanh(tl.load(gates + at_gates + CELLS, mask=is_here, other=0.0).to(tl.float32))
    f = tl.sigmoid(tl.load(gates + at_gates + 2 * CELLS, mask=is_here, other=0.0).to(tl.float32))
    o = tl.sigmoid(tl.load(gates + at_gates + 3 * CELLS, mask=is_here, other=0.0).to(tl.float32))
    memory = tl.load(after + at_cells, mask=is_here, other=0.0)
    earlier = tl.load(before + at_cells, mask=is_here, other=0.0)
    squashed = _tanh(memory)
    d_memory = tl.load(d_cell + at_cells, mask=is_here, other=0.0)
    d_memory += d_put_out * o * (1.0 - squashed * squashed)
    d_memory = _if_inside(d_memory, memory, cell_clip)
    kept = d_gates.dtype.element_ty
    d_i, d_j = d_memory * j * (1.0 - i) * i, d_memory * i * (1.0 - j * j)
    d_f, d_o = d_memory * earlier * (1.0 - f) * f, d_put_out * squashed * (1.0 - o) * o
    tl.store(d_gates + at_gates, d_i.to(kept), mask=is_here)
    tl.store(d_gates + at_gates + CELLS, d_j.to(kept), mask=is_here)
    tl.store(d_gates + at_gates + 2 * CELLS, d_f.to(kept), mask=is_here)
    tl.store(d_gates + at_gates + 3 * CELLS, d_o.to(kept), mask=is_here)
    tl.store(d_cell + at_cells, d_memory * f, mask=is_here)


@triton.jit
def _hidden_backward(  # type: ignore[no-untyped-def]
    d_gates,
    weight,
    d_hidden,
    num_rows,
    DIM: tl.constexpr,
    GATES: tl.constexpr,
    GATES_OF_A_PART: tl.constexpr,
    IS_INTERPRETED: tl.constexpr,
    ROWS_AT_ONCE: tl.constexpr,
    GATES_AT_ONCE: tl.constexpr,
    DIM_AT_ONCE: tl.constexpr,
):
    """
    The second half of a step backward, for a block of rows, one of dimensions and a part of the
    gates: `d_gates` `(rows, GATES)` by the recurrent `weight` `(GATES, DIM)`. The parts'
    `d_hidden` `(parts, rows, DIM)` are to be added.
    """
    rows = tl.program_id(1) * ROWS_AT_ONCE + tl.arange(0, ROWS_AT_ONCE)[:, None]
    dims = tl.program_id(0) * DIM_AT_ONCE + tl.arange(0, DIM_AT_ONCE)[None, :]
    part = tl.program_id(2)
    total = tl.zeros((ROWS_AT_ONCE, DIM_AT_ONCE), dtype=tl.float32)
    for start in range(0, GATES_OF_A_PART, GATES_AT_ONCE):
        first = part * GATES_OF_A_PART + start
        across = first + tl.arange(0, GATES_AT_ONCE)[None, :]
        down = first + tl.arange(0, GATES_AT_ONCE)[:, None]
        read = tl.load(
            d_gates + rows * GATES + across, mask=(rows < num_rows) & (across < GATES), other=0.0
        )
        is_weight = (down < GATES) & (dims < DIM)
        matrix = tl.load(weight + down * DIM + dims, mask=is_weight, other=0.0)
        total = _product(read, matrix, total, IS_INTERPRETED)
    at = (part * num_rows + rows) * DIM + dims
    tl.store(d_hidden + at, total, mask=(rows < num_rows) & (dims < DIM))


IS_INTERPRETED = isinstance(_projection, InterpretedFunction)
"""Whether Triton's interpreter runs the kernels, on a CPU: `TRITON_INTERPRET=1`."""

MOST_ROWS_AT_ONCE = 32
"""The rows of a block of gates: more would leave too few blocks for all multiprocessors."""

LEAST_AT_ONCE = 16
"""The fewest rows or columns of a product on tensor cores, and the columns of a block."""

SUMMED_AT_ONCE = 64
"""How many products are added up at once, of bfloat16 twice as many."""

GATES_OF_A_PART = 1024
"""
Sums over gates are long: they are made in parts of so many gates, for more blocks to share in, and
the next step adds the parts up.
"""


class _Blocks:
    """How a run's products are cut into blocks."""

    def __init__(self, run: LstmRun) -> None:
        self.num_rows, self.dim = run.state.hidden.shape
        self.num_cells = run.state.cell.size(1)
        is_small = self.num_rows <= LEAST_AT_ONCE
        self.rows_at_once = LEAST_AT_ONCE if is_small else MOST_ROWS_AT_ONCE
        self.summed_at_once = SUMMED_AT_ONCE * (2 if run.dtype == torch.bfloat16 else 1)

    def of_cells(self) -> Tuple[int, int]:
        """How many blocks of cells and of rows there are."""
        rows = triton.cdiv(self.num_rows, self.rows_at_once)
        return triton.cdiv(self.num_cells, LEAST_AT_ONCE), rows

    def of_outputs(self, parts: int = 1) -> Tuple[int, int, int]:
        """The same of outputs, and of parts of the sums. Outputs are few, and so are their rows."""
        rows = triton.cdiv(self.num_rows, LEAST_AT_ONCE)
        return triton.cdiv(self.dim, LEAST_AT_ONCE), rows, parts


def _bound(clip: object) -> float:
    """A clip as a number: infinity for no clip."""
    return float(clip) if isinstance(clip, (int, float)) else math.inf


def can_fuse(run: LstmRun) -> bool:
    """Whether there are kernels for a run: its outputs are projected, its memory is in float32."""
    return (
        len(run.weights.projection_weight) > 0
        and run.dtype in (torch.float32, torch.bfloat16)
        and run.state.cell.dtype == torch.float32
    )


def fused_steps(run: LstmRun, keeps: bool) -> List[torch.Tensor]:
    """
    Runs the steps of a run in which each step has all sentences.

    # Parameters

    run : `LstmRun`
        One that `can_fuse`.
    keeps : `bool`
        Whether to return what the backward pass needs too.

    # Returns

    `List[torch.Tensor]`
        Outputs `(packed, dim)` and memory after each step `(packed, cell)`; then, if it `keeps`
        them, gates before their nonlinearities, memory cells' outputs, and outputs before dropout.
    """
    blocks, num_steps = _Blocks(run), len(run.batch_sizes)
    num_rows, dim, num_cells = blocks.num_rows, blocks.dim, blocks.num_cells
    recurrent, projection = (part.to(run.dtype).contiguous() for part in run.weights[1:])
    hidden, memory = run.state.hidden.contiguous(), run.state.cell.contiguous()
    mask = run.recurrent_dropout_mask
    projected = hidden.new_empty(num_steps, num_rows, dim)
    outputs = projected if mask is None else torch.empty_like(projected)
    mask = hidden if mask is None else mask.contiguous()
    cells = hidden.new_empty(num_steps, num_rows, num_cells)
    put_out = torch.empty_like(cells[: num_steps if keeps else 1], dtype=run.dtype)
    gates = put_out.new_empty(num_steps if keeps else 0, num_rows, 4 * num_cells)
    to_gates = PackedLinear(run.weights.input_weight, run.dtype, num_uses=1)
    shares = to_gates(run.inputs, run.gate_bias()).view(num_steps, num_rows, -1)
    for step in range(num_steps):
        own = step if keeps else 0
        _gates_and_cells[blocks.of_cells()](
            hidden,
            shares[step],
            recurrent,
            memory,
            cells[step],
            put_out[own],
            gates[own] if keeps else put_out,
            num_rows,
            _bound(run.clips.cell),
            DIM=dim,
            CELLS=num_cells,
            KEEPS_GATES=keeps,
            IS_INTERPRETED=IS_INTERPRETED,
            ROWS_AT_ONCE=blocks.rows_at_once,
            CELLS_AT_ONCE=LEAST_AT_ONCE,
            DIM_AT_ONCE=blocks.summed_at_once,
        )
        _projection[blocks.of_outputs()](
            put_out[own],
            projection,
            mask,
            projected[step],
            outputs[step],
            num_rows,
            _bound(run.clips.projection),
            DIM=dim,
            CELLS=num_cells,
            DROPS=outputs is not projected,
            IS_INTERPRETED=IS_INTERPRETED,
            ROWS_AT_ONCE=LEAST_AT_ONCE,
            CELLS_AT_ONCE=blocks.summed_at_once,
            DIM_AT_ONCE=LEAST_AT_ONCE,
        )
        hidden, memory = outputs[step], cells[step]
    made = [outputs, cells, *([gates, put_out, projected] if keeps else [])]
    return [part.flatten(0, 1) for part in made]


def fused_steps_backward(
    run: LstmRun,
    histories: Sequence[torch.Tensor],
    d_outputs: torch.Tensor,
    d_state: LstmState,
) -> List[torch.Tensor]:
    """
    The backward pass of `fused_steps`, for as many sentences at each step.

    # Parameters

    run : `LstmRun`
        The same run; of its state the memory.
    histories : `Sequence[torch.Tensor]`
        All that `fused_steps` kept but the outputs.
    d_outputs : `torch.Tensor`
        The gradient of the outputs, shape `(packed, dim)`.
    d_state : `LstmState`
        The gradient of the last state, of shape `(batch, ...)`.

    # Returns

    `List[torch.Tensor]`
        The gradients of gates, before their nonlinearities, of outputs before their clip, and of
        the first state's two parts.
    """
    blocks, num_steps = _Blocks(run), len(run.batch_sizes)
    num_rows, dim, num_cells = blocks.num_rows, blocks.dim, blocks.num_cells
    recurrent, projection = (part.to(run.dtype).contiguous() for part in run.weights[1:])
    cells, gates, _, projected = (
        part.contiguous().view(num_steps, num_rows, -1) for part in histories
    )
    d_output = d_outputs.contiguous().view(num_steps, num_rows, dim)
    mask = run.recurrent_dropout_mask
    d_gates, d_projected = torch.empty_like(gates), torch.empty_like(d_output)
    d_cell = d_state.cell.clone(memory_format=torch.contiguous_format)
    parts = d_state.hidden.contiguous().unsqueeze(0)
    made_parts = parts.new_empty(triton.cdiv(4 * num_cells, GATES_OF_A_PART), num_rows, dim)
    for step in reversed(range(num_steps)):
        _cells_backward[blocks.of_cells()](
            parts,
            d_output[step],
            d_output[step] if mask is None else mask.contiguous(),
            projected[step],
            projection,
            gates[step],
            cells[step],
            cells[step - 1] if step > 0 else run.state.cell.contiguous(),
            d_cell,
            d_projected[step],
            d_gates[step],
            num_rows,
            _bound(run.clips.cell),
            _bound(run.clips.projection),
            PARTS=len(parts),
            DIM=dim,
            CELLS=num_cells,
            DROPS=mask is not None,
            IS_INTERPRETED=IS_INTERPRETED,
            ROWS_AT_ONCE=blocks.rows_at_once,
            CELLS_AT_ONCE=LEAST_AT_ONCE,
            DIM_AT_ONCE=blocks.summed_at_once,
        )
        parts = made_parts
        _hidden_backward[blocks.of_outputs(len(parts))](
            d_gates[step],
            recurrent,
            parts,
            num_rows,
            DIM=dim,
            GATES=4 * num_cells,
            GATES_OF_A_PART=GATES_OF_A_PART,
            IS_INTERPRETED=IS_INTERPRETED,
            ROWS_AT_ONCE=LEAST_AT_ONCE,
            GATES_AT_ONCE=blocks.summed_at_once,
            DIM_AT_ONCE=LEAST_AT_ONCE,
        )
    return [d_gates.flatten(0, 1), d_projected.flatten(0, 1), parts.sum(dim=0), d_cell]
