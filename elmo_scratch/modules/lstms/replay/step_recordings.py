"""The recordings of one LSTM."""

import logging
import threading
from collections import OrderedDict
from functools import partial
from typing import Any, Hashable, List, NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_scratch.cuda_graphs import recording_devices
from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.memory_cells import Opened, memory_cells_for
from elmo_scratch.modules.lstms.replay.recording import Recording
from elmo_scratch.modules.lstms.steps import Clips, LstmProducts, LstmWeights, Step, run_steps
from elmo_scratch.modules.lstms.steps_backward import run_steps_backward
from elmo_scratch.modules.products import WeightProduct
from elmo_scratch.native_library import is_plain

logger = logging.getLogger(__name__)

DEVICES = recording_devices()
"""Where recordings are made."""

NUM_STEPS = 10
"""How many steps a recording has: half a window of the original's recipe."""

NUMS_ROWS = (8, 32, 64, 128, 256)
"""How many sentences it has."""

MAX_GATES = 2**21
"""How many gates a step may have, those of all sentences together: 256 sentences of the released
small model, 128 of the original one. More keep a GPU busy without recordings, which would take
gigabytes."""

MAX_RECORDINGS, MAX_MADE = 8, 64
"""How many are kept, and after how many no more are made: weights that never stay where they are
need a new one for every batch."""


class RecordedSteps(NamedTuple):
    """
    Some steps of an LSTM with a fixed number of sentences.

    # Parameters

    num_rows : `int`
        How many sentences.
    forward : `Recording`
        Takes inputs of shape `(steps * rows, input_dim)`, hidden and cell of shape `(rows, ...)`,
        the bias, and the scale of outputs if there is one. Gives outputs and memory after each
        step; with a backward pass also gates, what was opened, and outputs before dropout; each of
        shape `(steps * rows, ...)`.
    backward : `Optional[Recording]`
        Takes memory before the first step, then memory, gates, opened, and outputs of `forward`,
        gradients of the outputs and of the last state, and the scale. Gives the gradients of gates
        and projected outputs, of shape `(steps * rows, ...)`, and of the first state.
    """

    num_rows: int
    forward: Recording
    backward: Optional[Recording]


class StepRecordings:
    """
    Makes recordings of an LSTM's steps, and keeps the last ones.

    Copies and pickles of an instance start empty.
    """

    def __init__(self) -> None:
        self._kept: "OrderedDict[Hashable, RecordedSteps]" = OrderedDict()
        self._lock = threading.Lock()
        self._num_made = 0
        self._is_off = False

    def of(
        self,
        weights: LstmWeights,
        dtype: torch.dtype,
        bias: torch.Tensor,
        inputs: torch.Tensor,
        batch_sizes: Sequence[int],
        state: LstmState,
        clips: Clips,
        output_scale: Optional[torch.Tensor],
        goes_back: bool,
    ) -> Optional[RecordedSteps]:
        """
        # Parameters

        weights : `LstmWeights`
            The weights, which may change where they lie.
        dtype : `torch.dtype`
            The precision of products.
        bias, inputs, batch_sizes, state, clips, output_scale
            As in `run_steps`.
        goes_back : `bool`
            Whether there will be a backward pass.

        # Returns

        `Optional[RecordedSteps]`
            What such a batch can be read with; `None` where there is none to be had.

        # Raises

        torch.cuda.OutOfMemoryError
            If the GPU's memory doesn't hold it. Nothing is kept then.
        """
        tensors = [inputs, *state, bias, *([] if output_scale is None else [output_scale])]
        num_rows = _num_rows(len(state.cell), len(weights.from_hidden))
        if self._is_off or num_rows is None or not _can_be_recorded(weights, tensors, batch_sizes):
            return None
        where = tuple((part.data_ptr(), *part.shape, *part.stride()) for part in weights)
        stream = torch.cuda.current_stream(inputs.device).cuda_stream if inputs.is_cuda else None
        key = (where, dtype, num_rows, clips, output_scale is None, goes_back, stream)
        with self._lock:
            if key not in self._kept:
                self._make(key, _Recorder(weights, dtype, num_rows, clips), tensors, goes_back)
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        return found

    def forget(self) -> None:
        """Lets go of all recordings."""
        self._kept.clear()

    def _make(
        self, key: Hashable, recorder: "_Recorder", tensors: List[torch.Tensor], goes_back: bool
    ) -> None:
        """Makes one more, if that goes well."""
        self._num_made += 1
        try:
            self._kept[key] = recorder.recorded(tensors, goes_back)
        except torch.cuda.OutOfMemoryError:
            self.forget()
            raise
        except RuntimeError as error:
            self._stop(str(error).split("\n", 1)[0])
            return
        if len(self._kept) > MAX_RECORDINGS:
            self._kept.popitem(last=False)
        if self._num_made >= MAX_MADE:
            self._stop("the weights, or the sizes of batches, change too often")

    def _stop(self, reason: str) -> None:
        """Makes no more."""
        self._is_off = True
        self.forget()
        logger.warning(
            "The steps of an LSTM are not replayed by CUDA graphs from now on, and take longer: %s",
            reason,
        )

    def __deepcopy__(self, _: object) -> "StepRecordings":
        return type(self)()

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), ()


class _Recorder(NamedTuple):
    """Records steps. See `StepRecordings.of`."""

    weights: LstmWeights
    dtype: torch.dtype
    num_rows: int
    clips: Clips

    def recorded(self, tensors: Sequence[torch.Tensor], goes_back: bool) -> RecordedSteps:
        """Of tensors as these, which may have any number of rows."""
        inputs, hidden, cell, bias, *scale = tensors
        like = [
            inputs.new_empty(NUM_STEPS * self.num_rows, inputs.size(1)),
            *self._states(hidden, cell),
            bias,
            *(part.new_empty(self.num_rows, part.size(1)) for part in scale),
        ]
        forward = Recording(partial(self._forward, goes_back), like)
        if not goes_back:
            return RecordedSteps(self.num_rows, forward, None)
        outputs, after, *kept = forward(like)
        _, hidden, cell, _, *scale = like
        given = [cell, after, *kept, outputs, hidden, cell, *scale]
        return RecordedSteps(self.num_rows, forward, Recording(self._backward, given))

    def _states(self, *parts: torch.Tensor) -> List[torch.Tensor]:
        """Of the recorded number of rows."""
        return [part.new_empty(self.num_rows, part.size(1)) for part in parts]

    def _forward(self, goes_back: bool, given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        inputs, hidden, cell, bias, *scale = given
        done = run_steps(
            LstmProducts.of(self.weights, self.dtype),
            bias,
            inputs,
            [self.num_rows] * NUM_STEPS,
            LstmState(hidden, cell),
            self.clips,
            scale[0] if scale else None,
            keeps_steps=True,
        )
        kept = [
            (step.opened.cell, step.opened.gates, step.opened.output, step.output)
            for step in done.steps
        ]
        # All but memory is needed by the backward pass alone.
        needed = list(zip(*kept))[: None if goes_back else 1]
        return [done.outputs, *(torch.cat(parts) for parts in needed)]

    def _backward(self, given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        before, *histories, d_outputs, d_hidden, d_cell = given[:8]
        after, gates, opened, projected = (part.split(self.num_rows) for part in histories)
        steps = [
            Step(previous, Opened(cell, own_opened, own_gates), output)
            for previous, cell, own_gates, own_opened, output in zip(
                (before, *after), after, gates, opened, projected
            )
        ]
        scale = given[8] if len(given) > 8 else None
        to_hidden = WeightProduct(self.weights.from_hidden.t(), self.dtype)
        to_cell = None
        if len(self.weights.projection) > 0:
            to_cell = WeightProduct(self.weights.projection.t(), self.dtype)
        back = run_steps_backward(
            to_hidden,
            to_cell,
            memory_cells_for(self.dtype, before),
            steps,
            self.clips,
            scale,
            d_outputs,
            LstmState(d_hidden, d_cell),
        )
        return [back.gates, back.projected, *back.state]


def _num_rows(num_sentences: int, num_gates: int) -> Optional[int]:
    """How many sentences to record for so many; `None` if they are too many."""
    rows = next((number for number in NUMS_ROWS if number >= num_sentences), None)
    return None if rows is None or rows * num_gates > MAX_GATES else rows


def _can_be_recorded(
    weights: LstmWeights, tensors: Sequence[torch.Tensor], batch_sizes: Sequence[int]
) -> bool:
    """Whether they are ordinary ones, on one GPU that isn't recorded already."""
    device = tensors[0].device
    return (
        device.type in DEVICES
        and len(batch_sizes) > 0
        and all(part.dtype == torch.float32 for part in (*weights, *tensors))
        and all(part.device == device for part in (*weights, *tensors))
        and is_plain(*weights, *tensors)
        and not torch.is_autocast_enabled(device.type)
        and not (device.type == "cuda" and torch.cuda.is_current_stream_capturing())
    )
