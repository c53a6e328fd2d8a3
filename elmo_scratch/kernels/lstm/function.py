"""Runs an LSTM in the fastest way there is, as one node of PyTorch's graph."""

from functools import partial
from typing import Any, Callable, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.kernels.library import IS_MISSING, warn_of_missing_code
from elmo_scratch.kernels.linear import PackedLinear
from elmo_scratch.kernels.lstm import cuda_graphs
from elmo_scratch.kernels.lstm.cuda_graphs import LstmGraphCache, RecordedSteps
from elmo_scratch.kernels.lstm.native import can_run_native, lstm_native
from elmo_scratch.kernels.lstm.reference import LstmProducts, lstm_reference
from elmo_scratch.kernels.lstm.run import LstmResult, LstmRun, LstmState, LstmWeights
from elmo_scratch.kernels.lstm.stack import StackCache, StackRun, can_read_stack, read_stack
from elmo_scratch.kernels.memory import FrozenWeightCache, release_spare_pages
from elmo_scratch.kernels.weight_gradients import weight_gradients

Way = Callable[[LstmRun], LstmResult]
"""How a run is computed."""


class LstmCache:
    """
    The prepared data of one LSTM: packed weights while they are frozen, and CUDA graphs. Copies and
    pickles start empty.
    """

    def __init__(self) -> None:
        self.recordings = LstmGraphCache()
        self.products = FrozenWeightCache[LstmProducts]()
        self.stack = StackCache()

    def forget(self) -> None:
        """Drops everything."""
        self.recordings.forget()
        self.products.forget()
        self.stack.forget()


def run_lstm(run: LstmRun, cache: LstmCache) -> LstmResult:
    """
    Runs an LSTM over the positions of a `PackedOrder`, in the fastest way for its device, sizes and
    types: on a GPU by CUDA graphs, on a CPU by native code, or else by the reference.

    # Parameters

    run : `LstmRun`
        All inputs of the run.
    cache : `LstmCache`
        The LSTM's own cache.

    # Returns

    `LstmResult`
        Outputs and last states, with `kept` and `backward` empty: PyTorch's graph holds what the
        backward pass needs.
    """
    tensors, device = run.tensors(), run.inputs.device.type
    needs_grad = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    # Without an empty projection, which is a new tensor at every run.
    weights = [weight for weight in (*run.weights, run.bias) if len(weight) > 0]
    is_dropped = run.has_own_weights or run.recurrent_dropout_mask is not None
    way: Way
    recorded: Optional[RecordedSteps] = None
    if device in cuda_graphs.DEVICES:
        recorded = cache.recordings.of(run, needs_grad)
    if recorded is not None:
        way = partial(cuda_graphs.lstm_replayed, recorded=recorded)
    elif not (needs_grad or is_dropped) and can_read_stack(alone := StackRun.of_one(run)):
        done = read_stack(alone, cache.stack)
        return LstmResult(done.outputs[0], LstmState(*(part[0] for part in done.state)))
    elif can_run_native(run):
        way = lstm_native
    else:
        if IS_MISSING and device == "cpu" and not torch.compiler.is_compiling():
            warn_of_missing_code()
        # Weights that are trained are packed for this run only.
        is_trained = needs_grad and any(weight.requires_grad for weight in weights)
        is_only_run = is_trained or run.has_own_weights
        pack = partial(LstmProducts.of, run, is_only_run)
        # Two dropped copies may lie at the same address and look alike, and yet differ.
        kept = FrozenWeightCache[LstmProducts]() if run.has_own_weights else cache.products
        products = kept.of(weights, run.dtype, pack)
        way = partial(lstm_reference, products=products, needs_grad=needs_grad)
    if not needs_grad:
        return way(run)
    if device == "cpu":
        release_spare_pages()
    outputs, hidden, cell = LstmFunction.apply(way, run, *tensors)
    return LstmResult(outputs, LstmState(hidden, cell))


class LstmFunction(torch.autograd.Function):
    """
    The run of an LSTM. The backward pass computes each weight's gradient as one large product over
    all steps, where PyTorch would add up a small one per step. Only the gates, cells and outputs of
    each step are kept.
    """

    @staticmethod
    def forward(
        ctx: Any, way: Way, run: LstmRun, *tensors: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        Computes the run in this `way`, which has a backward pass. `tensors` are the run's
        `tensors()`, passed again because PyTorch's graph knows only direct arguments. Returns
        outputs of shape `(packed, dim)`, and the last hidden and cell states.
        """
        result = way(run)
        ctx.set_materialize_grads(False)
        ctx.dtype, ctx.batch_sizes, ctx.clips = run.dtype, run.batch_sizes, run.clips
        ctx.has_own_weights = run.has_own_weights
        ctx.run_backward = result.backward
        # Unlike attributes, saved tensors are freed as soon as the backward pass is done, though a
        # trainer holds the loss until it has the next one.
        ctx.save_for_backward(*tensors, run.recurrent_dropout_mask, result.outputs, *result.kept)
        return result.outputs, result.state.hidden, result.state.cell

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, *gradients: Optional[torch.Tensor]
    ) -> Tuple[Optional[torch.Tensor], ...]:
        """The gradients of all arguments of `forward`, in their order."""
        # Unpacking all raises an error if one of the weights has changed since.
        inputs, *saved = ctx.saved_tensors
        *weights, bias, hidden, cell, mask, outputs = saved[:8]
        run = LstmRun(
            LstmWeights(*weights),
            ctx.dtype,
            bias,
            inputs,
            ctx.batch_sizes,
            LstmState(hidden, cell),
            ctx.clips,
            mask,
            ctx.has_own_weights,
        )
        back = ctx.run_backward(run, saved[8:], *_with_zeros(gradients, run, outputs))
        needed = ctx.needs_input_grad[2:]

        d_inputs = d_input_weight = d_recurrent = d_projection = d_bias = None
        if needed[0]:
            to_inputs = PackedLinear(run.weights.input_weight.t(), run.dtype, num_uses=1)
            d_inputs = to_inputs(back.gates).to(inputs.dtype)
        if any((needed[1], needed[2], needed[4])):
            before = _previous_outputs(run, outputs)
            made = weight_gradients(back.gates, [inputs, before], inputs.dtype)
            (d_input_weight, d_recurrent), d_bias = made
        if needed[3] and len(run.weights.projection_weight) > 0:
            projected = back.projected.to(run.dtype)
            made = weight_gradients(projected, [back.cell_outputs], inputs.dtype)
            (d_projection,) = made.weights
        found = (d_inputs, d_input_weight, d_recurrent, d_projection, d_bias, *back.state)
        return None, None, *(part if is_needed else None for part, is_needed in zip(found, needed))


def _with_zeros(
    gradients: Sequence[Optional[torch.Tensor]], run: LstmRun, outputs: torch.Tensor
) -> Tuple[torch.Tensor, Optional[LstmState]]:
    """The gradients of outputs and of last states; `None` for the latter if none has a gradient."""
    of_outputs, *of_state = gradients
    if of_outputs is None:
        of_outputs = torch.zeros_like(outputs)
    if all(part is None for part in of_state):
        return of_outputs, None
    parts = zip(of_state, run.state)
    return of_outputs, LstmState(
        *(torch.zeros_like(like) if part is None else part for part, like in parts)
    )


def _previous_outputs(run: LstmRun, outputs: torch.Tensor) -> torch.Tensor:
    """The output that each step started from, of shape `(packed, dim)`."""
    hidden, batch_sizes = run.state.hidden, run.batch_sizes
    if batch_sizes and batch_sizes[-1] == batch_sizes[0]:
        return torch.cat([hidden[: batch_sizes[0]], outputs[: -batch_sizes[0]]])
    steps = [hidden, *outputs.split(list(batch_sizes))] if batch_sizes else []
    # The empty first part is for runs without steps.
    return torch.cat([hidden[:0], *(step[:active] for step, active in zip(steps, batch_sizes))])
