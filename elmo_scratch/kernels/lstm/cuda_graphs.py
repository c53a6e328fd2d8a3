"""All steps of an LSTM on a GPU, recorded as CUDA graphs and replayed."""

import logging
import os
import threading
from collections import OrderedDict
from functools import lru_cache, partial
from typing import Any, Callable, Hashable, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from elmo_scratch.kernels.library import is_plain
from elmo_scratch.kernels.lstm.cells import CellOutput, MemoryCells, memory_cells_for
from elmo_scratch.kernels.lstm.reference import (
    LstmProducts,
    lstm_reference,
    lstm_reference_backward,
)
from elmo_scratch.kernels.lstm.run import LstmGradients, LstmResult, LstmRun, LstmState

SWITCH = "ELMO_SCRATCH_CUDA_GRAPHS"
"""The environment variable that, with the value 0, does without."""


def recording_devices() -> Tuple[str, ...]:
    """
    # Returns

    `Tuple[str, ...]`
        The types of devices on which operations that come again are recorded and replayed.
    """
    return () if os.environ.get(SWITCH) == "0" else ("cuda",)


class PaddedLayout(NamedTuple):
    """
    The steps and rows of as many recordings, one after the other, as a batch takes.

    # Parameters

    num_pieces : `int`
        How many recordings.
    num_places : `int`
        Steps times rows of each.
    places : `Optional[torch.Tensor]`
        Shape `(packed,)`: where the positions of a `PackedOrder` lie, over all pieces; `None`
        where they take every place.
    last : `torch.Tensor`
        Shape `(sentences,)`: where the last position of each sentence lies, for those that have
        one, in the order of reading.
    """

    num_pieces: int
    num_places: int
    places: Optional[torch.Tensor]
    last: torch.Tensor

    @classmethod
    def of(
        cls, batch_sizes: Tuple[int, ...], num_steps: int, num_rows: int, device: torch.device
    ) -> "PaddedLayout":
        """
        # Parameters

        batch_sizes : `Tuple[int, ...]`
            How many sentences are read at each step.
        num_steps, num_rows : `int`
            How many steps, and sentences at each, are recorded.
        device : `torch.device`
            Where the batch lies.
        """
        num_pieces = -(-len(batch_sizes) // num_steps)
        sizes = torch.tensor(batch_sizes, device="cpu").unsqueeze(1)
        is_read = torch.arange(num_rows, device="cpu") < sizes  # (steps, rows)
        rows = torch.arange(batch_sizes[0], device="cpu")
        last = (is_read.sum(dim=0)[rows] - 1) * num_rows + rows
        is_whole = bool(is_read.all()) and len(batch_sizes) == num_pieces * num_steps
        places = None if is_whole else is_read.flatten().nonzero().squeeze(1).to(device)
        return cls(num_pieces, num_steps * num_rows, places, last.to(device))

    def laid(self, vectors: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            Shape `(packed, dim)`: of all positions of a `PackedOrder`.

        # Returns

        `torch.Tensor`
            Shape `(pieces, places, dim)`, with zeros where no position is.
        """
        if self.places is not None:
            padded = vectors.new_zeros(self.num_pieces * self.num_places, vectors.size(1))
            vectors = padded.index_copy_(0, self.places, vectors)
        return vectors.unflatten(0, (self.num_pieces, self.num_places))

    def picked(self, laid: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        laid : `torch.Tensor`
            Shape `(pieces, places, dim)`.

        # Returns

        `torch.Tensor`
            Shape `(packed, dim)`: what lies where a position is.
        """
        flat = laid.flatten(0, 1)
        return flat if self.places is None else flat.index_select(0, self.places)

    def picked_last(self, laid: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        laid : `torch.Tensor`
            Shape `(pieces, places, dim)`.

        # Returns

        `torch.Tensor`
            Shape `(sentences, dim)`: what lies at their last positions.
        """
        return laid.flatten(0, 1).index_select(0, self.last)


@lru_cache(maxsize=8)
def grid_of(
    batch_sizes: Tuple[int, ...],
    num_steps: int,
    num_rows: int,
    device: torch.device,
    stream: int = 0,
) -> PaddedLayout:
    """
    The layout for one stream of the GPU. The last layouts are kept, as all layers of a batch share
    one.
    """
    return PaddedLayout.of(batch_sizes, num_steps, num_rows, device)


_ONE_AT_A_TIME = threading.Lock()
"""Of a process: nothing may wait for a GPU while something is recorded on it."""

Work = Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]


class RecordingError(Exception):
    """Work was not recorded, and what it leaves behind in PyTorch is not to be trusted."""


class Recording:
    """
    A CUDA graph: to replay it takes one call, where each operation of `work` would take one of its
    own, and a GPU does such small operations faster than a processor can ask for them.

    On other devices `work` is done anew each time. Threads take turns.

    # Parameters

    work : `Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]`
        Operations whose number and shapes depend on no number in a tensor. What else it reads, such
        as weights, is read at every call anew, from where it lay at first.
    like : `Sequence[torch.Tensor]`
        Tensors of the shapes, types and device of all that it will be given.

    # Raises

    RuntimeError
        If `work` fails; as `torch.cuda.OutOfMemoryError` if there is no memory for it.
    RecordingError
        If it can't be recorded.
    """

    def __init__(self, work: Work, like: Sequence[torch.Tensor]) -> None:
        self._work = work
        self._lock = threading.Lock()
        # What is made in inference mode could be written to in no other mode.
        with torch.inference_mode(False), torch.no_grad():
            self._given = [
                torch.zeros(part.shape, dtype=part.dtype, device=part.device) for part in like
            ]
            self._is_on_gpu = self._given[0].device.type == "cuda"
            if self._is_on_gpu:
                with _ONE_AT_A_TIME:
                    self._record()
            else:
                self._made = list(self._work(self._given))

    def _record(self) -> None:
        """Makes the graph."""
        device = self._given[0].device
        with torch.cuda.device(device):
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                # Libraries of products make room for themselves, and kernels are compiled.
                self._work(self._given)
            torch.cuda.current_stream().wait_stream(stream)
            self._graph = torch.cuda.CUDAGraph()
            # What products work in shall lie in the memory of this graph, and serve no other one.
            torch._C._cuda_clearCublasWorkspaces()
            try:
                # What other threads do on the GPU meanwhile is theirs.
                with torch.cuda.graph(
                    self._graph, stream=stream, capture_error_mode="thread_local"
                ):
                    self._made = list(self._work(self._given))
            except torch.cuda.OutOfMemoryError:
                raise
            except RuntimeError as error:
                raise RecordingError(
                    "the GPU's work on an LSTM could not be recorded as a CUDA graph. The "
                    f"environment variable {SWITCH}=0 does without: {error}"
                ) from error
            finally:
                torch._C._cuda_clearCublasWorkspaces()

    def room(self, times: int) -> List[torch.Tensor]:
        """
        # Parameters

        times : `int`
            How often it will be replayed.

        # Returns

        `List[torch.Tensor]`
            Room for all that is made then, each part of shape `(times, *)`.
        """
        return [part.new_empty(times, *part.shape) for part in self._made]

    def __call__(self, given: Sequence[torch.Tensor], into: Sequence[torch.Tensor]) -> None:
        """
        # Parameters

        given : `Sequence[torch.Tensor]`
            Of the shapes of `like`.
        into : `Sequence[torch.Tensor]`
            Where to put what `work` makes of them: a part of `room`.
        """
        with self._lock, torch.no_grad():
            torch._foreach_copy_(self._given, list(given))
            if self._is_on_gpu:
                self._graph.replay()
            else:
                self._made = list(self._work(self._given))
            torch._foreach_copy_(list(into), self._made)


NUM_STEPS = 10
"""How many steps a recording has: half a window of the original's recipe."""

Address = Tuple[int, ...]
"""Where a tensor lies, and how."""


class RecordedSteps(NamedTuple):
    """
    Some steps of an LSTM with a fixed number of sentences.

    # Parameters

    num_rows : `int`
        How many sentences.
    addresses : `Tuple[Address, ...]`
        Of the weights.
    memory_cells : `MemoryCells`
        Those that were recorded.
    stream : `int`
        Of the GPU, on which it is replayed.
    forward : `Recording`
        Takes `batch_tensors` of a run of so many steps and sentences. Gives outputs and memory
        after each step; with a backward pass also gates, memory cells' outputs, and outputs before
        dropout; each of shape `(steps * rows, ...)`.
    backward : `Optional[Recording]`
        Takes memory before the first step, then all that `forward` gives, the outputs last and as
        gradients, the gradients of the last state, and the dropout mask if there is one. Gives the
        gradients of gates and projected outputs, of shape `(steps * rows, ...)`, and of the first
        state.
    """

    num_rows: int
    addresses: Tuple[Address, ...]
    memory_cells: MemoryCells
    stream: int
    forward: Recording
    backward: Optional[Recording]


def addresses_of(run: LstmRun) -> Tuple[Address, ...]:
    """Each matrix's place in memory, shape and strides."""
    return tuple((weight.data_ptr(), *weight.shape, *weight.stride()) for weight in run.weights)


def batch_tensors(run: LstmRun) -> List[torch.Tensor]:
    """What is copied for each replay: all tensors but the matrices, which are read in place."""
    mask = run.recurrent_dropout_mask
    return [run.inputs, *run.state, run.bias, *([] if mask is None else [mask])]


class StepRecorder(NamedTuple):
    """
    Records the steps of `run`, which has `NUM_STEPS` of them, to be replayed on one `stream` of the
    GPU. Beside the weights, only the shapes and types of the run's tensors matter.
    """

    run: LstmRun
    stream: int

    @classmethod
    def like(cls, run: LstmRun, num_rows: int, stream: int) -> "StepRecorder":
        """For runs like `run`, of `num_rows` sentences."""

        def room(part: torch.Tensor, rows: int) -> torch.Tensor:
            return part.new_empty(1, 1).expand(rows, part.size(1))

        mask = run.recurrent_dropout_mask
        recorded = run._replace(
            inputs=room(run.inputs, NUM_STEPS * num_rows),
            batch_sizes=[num_rows] * NUM_STEPS,
            state=LstmState(*(room(part, num_rows) for part in run.state)),
            recurrent_dropout_mask=None if mask is None else room(mask, num_rows),
        )
        return cls(recorded, stream)

    def recorded(self, needs_grad: bool) -> RecordedSteps:
        """Records them, the backward pass only if it is needed."""
        num_rows, (hidden, cell) = self.run.batch_sizes[0], self.run.state
        memory_cells = memory_cells_for(self.run.dtype, cell)
        forward = Recording(partial(self._forward, needs_grad), batch_tensors(self.run))
        recorded = RecordedSteps(
            num_rows, addresses_of(self.run), memory_cells, self.stream, forward, None
        )
        if not needs_grad:
            return recorded
        outputs, after, *kept = (part[0] for part in forward.room(1))
        mask = batch_tensors(self.run)[4:]
        given = [cell, after, *kept, outputs, hidden, cell, *mask]
        return recorded._replace(backward=Recording(self._backward, given))

    def _forward(self, needs_grad: bool, given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        inputs, hidden, cell, bias, *mask = given
        run = self.run._replace(
            inputs=inputs,
            state=LstmState(hidden, cell),
            bias=bias,
            recurrent_dropout_mask=mask[0] if mask else None,
        )
        result = lstm_reference(run, LstmProducts.of(run), needs_grad=True)
        cells, cell_outputs, gates, projected = (result.kept[part::4] for part in range(4))
        # All but memory is needed by the backward pass alone.
        histories = [cells, gates, cell_outputs, projected] if needs_grad else [cells]
        return [result.outputs, *(torch.cat(list(parts)) for parts in histories)]

    def _backward(self, given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        before, *histories, d_outputs, d_hidden, d_cell = given[:8]
        run = self.run._replace(
            state=LstmState(d_hidden, before),
            recurrent_dropout_mask=given[8] if len(given) > 8 else None,
        )
        memory_cells = memory_cells_for(self.run.dtype, before)
        kept = step_tensors(run, histories)
        back = lstm_reference_backward(
            memory_cells, run, kept, d_outputs, LstmState(d_hidden, d_cell)
        )
        return [back.gates, back.projected, *back.state]


def step_tensors(run: LstmRun, histories: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    """
    What `lstm_reference` keeps of a run, from memory after each step, gates, memory cells' outputs
    and outputs before dropout, each of shape `(packed, ...)`.
    """
    steps = zip(*(part.split(list(run.batch_sizes)) for part in histories))
    return [
        part
        for cell, gates, cell_output, output in steps
        for part in (*CellOutput(cell, cell_output, gates), output)
    ]


def lstm_replayed(run: LstmRun, recorded: RecordedSteps) -> LstmResult:
    """
    Runs an LSTM by the recordings that `LstmGraphCache.of` found for it. Each step is computed for
    as many sentences as were recorded, also after they have ended: what comes of that is left out.
    """
    num_rows = recorded.num_rows
    grid = _grid(recorded, run)
    inputs, hidden, cell, bias, *mask = batch_tensors(run)
    hidden, cell, *mask = (_pad_rows(part, num_rows) for part in (hidden, cell, *mask))
    made = recorded.forward.room(grid.num_pieces)
    for own_inputs, *own in zip(grid.laid(inputs), *made):
        recorded.forward([own_inputs, hidden, cell, bias, *mask], own)
        hidden, cell = (part[-num_rows:] for part in own[:2])
    ended = zip(map(grid.picked_last, made[:2]), run.state)
    # Sentences without a position end with what they start from.
    state = LstmState(*(torch.cat([part, start[len(part) :]]) for part, start in ended))
    if recorded.backward is None:
        return LstmResult(grid.picked(made[0]), state)
    outputs, *histories = map(grid.picked, made)
    return LstmResult(outputs, state, histories, partial(_lstm_replayed_backward, recorded))


def _lstm_replayed_backward(
    recorded: RecordedSteps,
    run: LstmRun,
    kept: Sequence[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: Optional[LstmState],
) -> LstmGradients:
    """With the recordings of the run, an `LstmBackward`."""
    moved = recorded.addresses[1:] != addresses_of(run)[1:]
    if state_gradients is not None or moved:
        # They would come in between the steps of a recording, or it would read what lies where
        # the weights were.
        return lstm_reference_backward(
            recorded.memory_cells, run, step_tensors(run, kept), output_gradients, state_gradients
        )
    assert recorded.backward is not None
    num_rows, before = recorded.num_rows, run.state.cell
    mask = [_pad_rows(part, num_rows) for part in batch_tensors(run)[4:]]
    d_hidden = before.new_zeros(num_rows, output_gradients.size(1))
    d_cell = before.new_zeros(num_rows, before.size(1))
    grid = _grid(recorded, run)
    laid = [grid.laid(part) for part in (*kept, output_gradients)]
    # Memory before the first step of each piece.
    cells = [_pad_rows(before, num_rows), *(part[-num_rows:] for part in laid[0][:-1])]
    made = recorded.backward.room(grid.num_pieces)
    for cell, *read, own in reversed([*zip(cells, *laid, zip(*made))]):
        recorded.backward([cell, *read, d_hidden, d_cell, *mask], own)
        *_, d_hidden, d_cell = own
    d_gates, d_projected = map(grid.picked, made[:2])
    d_state = LstmState(d_hidden[: len(before)], d_cell[: len(before)])
    return LstmGradients(d_gates, d_projected, kept[2].to(run.dtype), d_state)


def _grid(recorded: RecordedSteps, run: LstmRun) -> PaddedLayout:
    """How the run is laid over the recordings."""
    sizes, device = tuple(run.batch_sizes), run.inputs.device
    return grid_of(sizes, NUM_STEPS, recorded.num_rows, device, recorded.stream)


def _pad_rows(part: torch.Tensor, num_rows: int) -> torch.Tensor:
    """With rows of zeros."""
    if len(part) == num_rows:
        return part
    padded = part.new_zeros(num_rows, part.size(1))
    padded[: len(part)] = part
    return padded


logger = logging.getLogger(__name__)

DEVICES = recording_devices()
"""Where recordings are made."""

NUMS_ROWS = (8, 32, 64, 128, 256)
"""How many sentences it has."""

MAX_GATES = 2**21
"""How many gates a step may have, those of all sentences together: 256 sentences of the released
small model, 128 of the original one. More keep a GPU busy without recordings, which would take
gigabytes."""

MAX_RECORDINGS = 2 * len(NUMS_ROWS)
"""How many are kept: those of a training and of its validation."""

MAX_MOVES = 16
"""How often weights may lie elsewhere: those that never stay need recordings for every batch."""


class LstmGraphCache:
    """
    Makes recordings of an LSTM's steps, and keeps the last ones.

    Copies and pickles of an instance start empty.
    """

    def __init__(self) -> None:
        self._kept: "OrderedDict[Hashable, RecordedSteps]" = OrderedDict()
        # What is made may have to be let go of.
        self._lock = threading.RLock()
        self._addresses: Set[Tuple[Address, ...]] = set()
        self._is_off = False

    def of(self, run: LstmRun, needs_grad: bool) -> Optional[RecordedSteps]:
        """
        # Returns

        `Optional[RecordedSteps]`
            What such a run is replayed with, made now if need be; `None` where there is none to be
            had, because of what the run is, or because the GPU's memory doesn't hold a recording.

        # Raises

        RecordingError
            If recording fails.
        """
        num_rows = _num_rows(len(run.state.cell), len(run.weights.recurrent_weight))
        if self._is_off or num_rows is None or not _can_be_recorded(run):
            return None
        device = run.inputs.device
        stream = torch.cuda.current_stream(device).cuda_stream if run.inputs.is_cuda else 0
        shape = (run.dtype, num_rows, run.clips, run.recurrent_dropout_mask is None, needs_grad)
        key = (addresses_of(run), *shape, device, stream, _rounding())
        with self._lock:
            if key not in self._kept:
                self._make(key, StepRecorder.like(run, num_rows, stream), needs_grad)
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        return found

    def forget(self) -> None:
        """Lets go of all recordings."""
        with self._lock:
            self._kept.clear()

    def _make(self, key: Hashable, recorder: StepRecorder, needs_grad: bool) -> None:
        """Makes one more, if that goes well."""
        addresses = addresses_of(recorder.run)
        if addresses not in self._addresses:
            # Nothing reads those of weights that lay elsewhere again.
            self._kept.clear()
            self._addresses.add(addresses)
        if len(self._addresses) > MAX_MOVES:
            self._stop("its weights don't stay where they are")
            return
        try:
            self._kept[key] = recorder.recorded(needs_grad)
        except RuntimeError as error:
            self._stop(str(error).split("\n", 1)[0])
            if isinstance(error, torch.cuda.OutOfMemoryError):
                torch.cuda.empty_cache()
            return
        if len(self._kept) > MAX_RECORDINGS:
            self._kept.popitem(last=False)

    def _stop(self, reason: str) -> None:
        """Makes no more."""
        self._is_off = True
        self.forget()
        logger.warning(
            "The steps of an LSTM are not replayed by CUDA graphs from now on, and take longer: %s",
            reason,
        )

    def __deepcopy__(self, _: object) -> "LstmGraphCache":
        return type(self)()

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), ()


def _rounding() -> Hashable:
    """How a GPU's products in float32 are rounded: what is recorded stays as it was asked for."""
    settings = torch.backends.cuda.matmul
    # Where there is the first, asking for the second may be an error.
    precision: Optional[str] = getattr(settings, "fp32_precision", None)
    return settings.allow_tf32 if precision is None else precision


def _num_rows(num_sentences: int, num_gates: int) -> Optional[int]:
    """How many sentences to record for so many; `None` if they are too many."""
    rows = next((number for number in NUMS_ROWS if number >= num_sentences), None)
    return None if rows is None or rows * num_gates > MAX_GATES else rows


def _can_be_recorded(run: LstmRun) -> bool:
    """Whether its tensors are ordinary ones, on one GPU that isn't recorded already."""
    device = run.inputs.device
    if device.type not in DEVICES:
        return False
    tensors = (*run.weights, *batch_tensors(run))
    return (
        len(run.batch_sizes) > 0
        and all(part.dtype == torch.float32 for part in tensors)
        and all(part.device == device for part in tensors)
        and is_plain(*tensors)
        and not torch.is_autocast_enabled(device.type)
        and not (device.type == "cuda" and torch.cuda.is_current_stream_capturing())
    )
