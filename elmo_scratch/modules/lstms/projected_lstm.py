"""One layer of an LSTM whose output is projected and whose cells and outputs are clipped."""

from typing import Any, NamedTuple, Optional, Sequence

import torch

from elmo_scratch.modules.lstms.compiled_reading import (
    CompiledProducts,
    can_read_compiled,
    read_compiled,
)
from elmo_scratch.modules.lstms.compiled_run import can_run_compiled
from elmo_scratch.modules.lstms.lstm_function import LstmFunction, RunSettings
from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.replay import StepRecordings, run_replayed
from elmo_scratch.modules.lstms.steps import Clips, LstmProducts, LstmWeights, run_steps
from elmo_scratch.modules.products import FrozenProducts, MixedPrecision


class LstmOutput(NamedTuple):
    """
    What an LSTM makes of a batch.

    # Parameters

    outputs : `torch.Tensor`
        Shape `(read, dim)`.
    state : `LstmState`
        Of shape `(batch, ...)`: each sentence's last state.
    """

    outputs: torch.Tensor
    state: LstmState


class ProjectedLstm(MixedPrecision):
    """
    An LSTM that reads the positions of a `ReadingOrder`.

        i, j, f, o = x W + h U + b
        c = clip(σ(f + 1) c + σ(i) tanh(j))
        h = clip((σ(o) tanh(c)) P)

    # Parameters

    input_dim : `int`
        The size of an input vector.
    dim : `int`
        The size of an output vector. Where it equals `cell_size` there is neither a projection
        nor its clip.
    cell_size : `int`
        The number of memory cells.
    cell_clip : `float`, optional (default = `3.0`, the released models' value)
        Cells are kept in `[-cell_clip, cell_clip]` after every step. `None` never clips.
    projection_clip : `float`, optional (default = `3.0`, the released models' value)
        The same for projected outputs.
    recurrent_dropout : `float`, optional (default = `0.0`)
        Share of the numbers of a sentence's outputs that is dropped in training, the same ones at
        every step, in `[0, 1)`.

    # Raises

    ValueError
        If `recurrent_dropout` is not in that range.

    # Source

    Sak, Senior and Beaufays 2014, "Long Short-Term Memory Based Recurrent Neural Network
    Architectures for Large Vocabulary Speech Recognition", section 2; the order of the gates, the
    constant in the forget gate, the clipping and the missing projection as in
    `tf.nn.rnn_cell.LSTMCell` and `bilm-tf`'s use of it; recurrent dropout as in Gal and Ghahramani
    2016.
    """

    def __init__(
        self,
        input_dim: int,
        dim: int,
        cell_size: int,
        *,
        cell_clip: Optional[float] = 3.0,
        projection_clip: Optional[float] = 3.0,
        recurrent_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0.0 <= recurrent_dropout < 1.0:
            raise ValueError(
                f"expected `recurrent_dropout` from 0 on and below 1, but got {recurrent_dropout}"
            )
        self.dim = dim
        self.cell_size = cell_size
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.recurrent_dropout = recurrent_dropout
        self.input_weight = torch.nn.Parameter(torch.empty(4 * cell_size, input_dim))
        self.recurrent_weight = torch.nn.Parameter(torch.empty(4 * cell_size, dim))
        self.bias = torch.nn.Parameter(torch.zeros(4 * cell_size))
        self.projection_weight: Optional[torch.nn.Parameter] = None
        if dim != cell_size:
            self.projection_weight = torch.nn.Parameter(torch.empty(dim, cell_size))
        for weight in (self.input_weight, self.recurrent_weight, self.projection_weight):
            if weight is not None:
                torch.nn.init.xavier_uniform_(weight)
        self._frozen = FrozenProducts[LstmProducts]()
        self._frozen_compiled = FrozenProducts[CompiledProducts]()
        self._recordings = StepRecordings()

    def forward(
        self, inputs: torch.Tensor, batch_sizes: Sequence[int], state: Optional[LstmState] = None
    ) -> LstmOutput:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(read, input_dim)`, in the order of a `ReadingOrder`.
        batch_sizes : `Sequence[int]`
            How many sentences are read at each step.
        state : `LstmState`, optional (default = `None`)
            Of shape `(batch, ...)`: where each sentence, in the order of reading, starts. `None`
            starts from zeros.

        # Returns

        `LstmOutput`
            Of shape `(read, dim)`, and the last states.
        """
        if state is None:
            batch = batch_sizes[0] if batch_sizes else 0
            state = LstmState(
                inputs.new_zeros(batch, self.dim), inputs.new_zeros(batch, self.cell_size)
            )
        weights = self._weights()
        # What stands for no projection is another tensor each time.
        own = [weight for weight in weights if len(weight) > 0]
        dtype = self.matmul_dtype_for(self.recurrent_weight)
        forget = torch.zeros_like(self.bias)
        forget[2 * self.cell_size : 3 * self.cell_size] = 1.0
        bias = self.bias + forget
        clips = Clips(self.cell_clip, self.projection_clip)
        scale = self._output_scale(state.hidden)
        graph = (inputs, *weights, bias, *state)
        goes_back = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in graph)
        read = (weights, dtype, bias, inputs, batch_sizes, state)
        recorded = self._recordings.of(*read, clips, scale, goes_back)
        if goes_back:
            products: Optional[LstmProducts] = None
            if recorded is None and not can_run_compiled(*read):
                # Weights that are trained are prepared for this run alone.
                only = batch_sizes if any(weight.requires_grad for weight in own) else None
                products = self._frozen.of(
                    own, dtype, lambda: LstmProducts.of(weights, dtype, only)
                )
            settings = RunSettings(dtype, products, recorded, batch_sizes, clips, scale)
            outputs, hidden, cell = LstmFunction.apply(settings, inputs, *weights, bias, *state)
            return LstmOutput(outputs, LstmState(hidden, cell))
        if recorded is not None:
            kept = run_replayed(recorded, *read, clips, scale)
            return LstmOutput(kept.outputs, kept.state)
        rest = (bias, inputs, batch_sizes, state, clips, scale)
        if can_read_compiled(*read):
            compiled = self._frozen_compiled.of(
                own, dtype, lambda: CompiledProducts.of(weights, dtype)
            )
            return LstmOutput(*read_compiled(compiled, *rest))
        products = self._frozen.of(own, dtype, lambda: LstmProducts.of(weights, dtype))
        done = run_steps(products, *rest)
        return LstmOutput(done.outputs, done.state)

    def forget_recordings(self) -> None:
        """Lets go of the GPU's memory in which steps are recorded; they are recorded anew."""
        self._recordings.forget()

    def _apply(self, *arguments: Any, **settings: Any) -> "ProjectedLstm":
        # They would hold on to the memory that the weights leave.
        self.forget_recordings()
        self._frozen.forget()
        self._frozen_compiled.forget()
        return super()._apply(*arguments, **settings)

    def _weights(self) -> LstmWeights:
        """The weights, with a projection of no rows where there is none."""
        projection: Optional[torch.Tensor] = self.projection_weight
        if projection is None:
            projection = self.recurrent_weight.new_zeros(0, self.cell_size)
        return LstmWeights(self.input_weight, self.recurrent_weight, projection)

    def _output_scale(self, hidden: torch.Tensor) -> Optional[torch.Tensor]:
        """What recurrent dropout multiplies outputs with, of shape `(batch, dim)`."""
        if not self.training or self.recurrent_dropout == 0.0:
            return None
        return torch.nn.functional.dropout(torch.ones_like(hidden), self.recurrent_dropout)
