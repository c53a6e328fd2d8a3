"""An LSTM's run: which way it goes, and how it is one node of PyTorch's graph."""

from functools import partial
from typing import Any, Callable, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.kernels.frozen_cache import FrozenWeightCache
from elmo_scratch.kernels.linear import PackedLinear, weight_gradients
from elmo_scratch.kernels.lstm.cuda_graphs import LstmGraphCache, lstm_replayed
from elmo_scratch.kernels.lstm.native import (
    NativeWeights,
    can_infer_native,
    can_run_native,
    lstm_native,
    lstm_native_inference,
)
from elmo_scratch.kernels.lstm.reference import LstmProducts, lstm_reference
from elmo_scratch.kernels.lstm.run import LstmResult, LstmRun, LstmState, LstmWeights

Way = Callable[[LstmRun], LstmResult]
"""How a run is computed."""


class LstmCache:
    """
    What is prepared for the runs of one LSTM: its weights while they are frozen, and CUDA graphs.

    Copies and pickles of an instance start empty.
    """

    def __init__(self) -> None:
        self.recordings = LstmGraphCache()
        self._products = FrozenWeightCache[LstmProducts]()
        self._native = FrozenWeightCache[NativeWeights]()

    def forget(self) -> None:
        """Lets go of everything."""
        self.recordings.forget()
        self._products.forget()
        self._native.forget()

    def products(self, run: LstmRun, needs_grad: bool) -> LstmProducts:
        """The weights for `lstm_reference`."""
        weights = _own_weights(run)
        # Weights that are trained are prepared for this run alone.
        is_only_run = needs_grad and any(weight.requires_grad for weight in weights)
        return self._products.of(weights, run.dtype, lambda: LstmProducts.of(run, is_only_run))

    def native(self, run: LstmRun) -> NativeWeights:
        """The weights for `lstm_native_inference`."""
        return self._native.of(_own_weights(run), run.dtype, lambda: NativeWeights.of(run))


def run_lstm(run: LstmRun, cache: LstmCache) -> LstmResult:
    """
    Runs an LSTM over the positions of a `PackedOrder`, in the fastest way for its device, sizes
    and types. The result keeps nothing: where gradients are needed, PyTorch's graph does.
    """
    tensors = run.tensors()
    needs_grad = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    way = _way(run, cache, needs_grad)
    if not needs_grad:
        return way(run)
    outputs, hidden, cell = LstmFunction.apply(way, run, *tensors)
    return LstmResult(outputs, LstmState(hidden, cell))


def _way(run: LstmRun, cache: LstmCache, needs_grad: bool) -> Way:
    recorded = cache.recordings.of(run, needs_grad)
    if recorded is not None:
        return partial(lstm_replayed, recorded=recorded)
    if needs_grad and can_run_native(run):
        return lstm_native
    if not needs_grad and can_infer_native(run):
        return partial(lstm_native_inference, weights=cache.native(run))
    products = cache.products(run, needs_grad)
    return partial(lstm_reference, products=products, needs_grad=needs_grad)


class LstmFunction(torch.autograd.Function):
    """
    A run of an LSTM. The backward pass computes each weight's gradient by one large product over
    all steps, where PyTorch would add up a small one for each step. Only gates, cells and outputs
    of each step are kept.
    """

    @staticmethod
    def forward(
        ctx: Any, way: Way, run: LstmRun, *tensors: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        # Parameters

        way : `Way`
            How to compute it, with a backward pass.
        run : `LstmRun`
            The run.
        tensors : `torch.Tensor`
            The run's `tensors`: PyTorch's graph knows only direct arguments.

        # Returns

        `Tuple[torch.Tensor, torch.Tensor, torch.Tensor]`
            Outputs of shape `(packed, dim)`, and the last states, hidden and cell.
        """
        result = way(run)
        ctx.set_materialize_grads(False)
        ctx.dtype, ctx.batch_sizes, ctx.clips = run.dtype, run.batch_sizes, run.clips
        ctx.run_backward = result.backward
        # Unlike attributes, these are let go as soon as the backward pass is done, though a trainer
        # holds on to the loss until it has the next one.
        ctx.save_for_backward(*tensors, run.recurrent_dropout_mask, result.outputs, *result.kept)
        return result.outputs, result.state.hidden, result.state.cell

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, *gradients: Optional[torch.Tensor]
    ) -> Tuple[Optional[torch.Tensor], ...]:
        """The gradients of all that `forward` took, in its order."""
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


def _own_weights(run: LstmRun) -> Sequence[torch.Tensor]:
    """All weights but an empty projection, which is another tensor each time."""
    return [weight for weight in (*run.weights, run.bias) if len(weight) > 0]


def _with_zeros(
    gradients: Sequence[Optional[torch.Tensor]], run: LstmRun, outputs: torch.Tensor
) -> Tuple[torch.Tensor, Optional[LstmState]]:
    """The gradients of outputs and of last states, `None` if no last state has one."""
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
    # A part without rows, because there may be no step.
    return torch.cat([hidden[:0], *(step[:active] for step, active in zip(steps, batch_sizes))])
