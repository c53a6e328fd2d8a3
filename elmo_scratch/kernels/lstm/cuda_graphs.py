"""All steps of an LSTM on a GPU, recorded as CUDA graphs and replayed."""

import logging
import os
import threading
from collections import OrderedDict
from functools import lru_cache, partial
from types import ModuleType
from typing import Any, Callable, Hashable, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from elmo_scratch.kernels import gpu
from elmo_scratch.kernels.gpu import (
    FUSED_SWITCH,
    agree,
    fused_kernels,
    made_by_triton,
    product_rounding,
)
from elmo_scratch.kernels.library import is_plain
from elmo_scratch.kernels.lstm.cells import PLAIN, CellOutput, MemoryCells, memory_cells_for
from elmo_scratch.kernels.lstm.reference import (
    LstmProducts,
    lstm_reference,
    lstm_reference_backward,
)
from elmo_scratch.kernels.lstm.run import LstmGradients, LstmResult, LstmRun, LstmState

logger = logging.getLogger(__name__)

SWITCH = "ELMO_SCRATCH_CUDA_GRAPHS"
"""On a GPU, LSTM steps run as CUDA graphs. Set this environment variable to 0 to turn that off."""


def recording_devices() -> Tuple[str, ...]:
    """The types of devices on which steps are recorded and replayed."""
    return () if os.environ.get(SWITCH) == "0" else ("cuda",)


class PaddedLayout(NamedTuple):
    """
    How a packed batch is laid out, padded, over as many recordings in a row as it takes.

    `num_pieces` recordings have `num_places` (steps times rows) each. `places`, shape `(packed,)`,
    are the places of a `PackedOrder`'s positions over all pieces; `None` if they take every place.
    `last`, shape `(sentences,)`, is the place of each sentence's last position, in the order of
    reading, for sentences that have one.
    """

    num_pieces: int
    num_places: int
    places: Optional[torch.Tensor]
    last: torch.Tensor

    @classmethod
    def of(
        cls, batch_sizes: Tuple[int, ...], num_steps: int, num_rows: int, device: torch.device
    ) -> "PaddedLayout":
        """The layout of a batch over recordings of `num_steps` steps of `num_rows` sentences."""
        num_pieces = -(-len(batch_sizes) // num_steps)
        sizes = torch.tensor(batch_sizes, device="cpu").unsqueeze(1)
        is_read = torch.arange(num_rows, device="cpu") < sizes  # (steps, rows)
        rows = torch.arange(batch_sizes[0], device="cpu")
        last = (is_read.sum(dim=0)[rows] - 1) * num_rows + rows
        is_whole = bool(is_read.all()) and len(batch_sizes) == num_pieces * num_steps
        places = None if is_whole else is_read.flatten().nonzero().squeeze(1).to(device)
        return cls(num_pieces, num_steps * num_rows, places, last.to(device))

    def laid(self, vectors: torch.Tensor) -> torch.Tensor:
        """Shape `(packed, dim)` → `(pieces, places, dim)`, padded with zeros."""
        if self.places is not None:
            padded = vectors.new_zeros(self.num_pieces * self.num_places, vectors.size(1))
            vectors = padded.index_copy_(0, self.places, vectors)
        return vectors.unflatten(0, (self.num_pieces, self.num_places))

    def picked(self, laid: torch.Tensor) -> torch.Tensor:
        """Shape `(pieces, places, dim)` → `(packed, dim)`, without the padding."""
        flat = laid.flatten(0, 1)
        return flat if self.places is None else flat.index_select(0, self.places)

    def picked_last(self, laid: torch.Tensor) -> torch.Tensor:
        """
        Shape `(pieces, places, dim)` → `(sentences, dim)`, at the last position of each sentence.
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
    The layout for one stream of the GPU. The cache keeps the last layouts, because all layers of a
    batch share one.
    """
    return PaddedLayout.of(batch_sizes, num_steps, num_rows, device)


NUM_TIMED = 5
"""How many replays are timed."""

CLEARLY = 0.9
"""Triton's kernels must take at most this share of the time, so that chance seldom chooses."""

_ONE_AT_A_TIME = threading.Lock()
"""One lock per process: nothing may wait for a GPU while it is being recorded."""

Work = Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]


class RecordingError(Exception):
    """Recording failed, and PyTorch may be left in a state that is not to be trusted."""


class Recording:
    """
    A CUDA graph of `work`. Replaying it takes one call instead of one call per operation; a GPU
    runs such small operations faster than a CPU can launch them. On other devices `work` runs anew
    each time. Threads take turns.

    The number and the shapes of `work`'s operations must not depend on values in tensors. Tensors
    that it reads besides its arguments, such as weights, are read at every replay from their
    address at recording time. `like` are tensors with the shapes, types and device of all
    arguments.

    Raises the error of `work` if it fails (`torch.cuda.OutOfMemoryError` without memory for it),
    and `RecordingError` if it can't be recorded.
    """

    def __init__(self, work: Work, like: Sequence[torch.Tensor]) -> None:
        self._work = work
        self._lock = threading.Lock()
        # Tensors made in inference mode could not be written to outside of it.
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
        """Captures the graph."""
        device = self._given[0].device
        with torch.cuda.device(device):
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                # A first run lets cuBLAS allocate its workspaces, and compiles kernels.
                self._work(self._given)
            torch.cuda.current_stream().wait_stream(stream)
            self._graph = torch.cuda.CUDAGraph()
            # cuBLAS's workspaces shall be allocated in this graph's memory, for this graph only.
            torch._C._cuda_clearCublasWorkspaces()
            try:
                # Work of other threads on the GPU is not captured.
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

    def milliseconds(self) -> float:
        """How long a replay takes on a GPU, the shortest of a few."""
        times: List[float] = []
        with self._lock, _ONE_AT_A_TIME, torch.cuda.device(self._given[0].device):
            for _ in range(NUM_TIMED):
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                self._graph.replay()
                end.record()
                end.synchronize()
                times.append(start.elapsed_time(end))
        return min(times)

    def room(self, times: int) -> List[torch.Tensor]:
        """Allocates the results of `times` replays, each part of shape `(times, *)`."""
        return [part.new_empty(times, *part.shape) for part in self._made]

    def __call__(self, given: Sequence[torch.Tensor], into: Sequence[torch.Tensor]) -> None:
        """
        Replays the work on `given`, with the shapes of `like`, and writes the results to `into`, a
        part of `room`.
        """
        with self._lock, torch.no_grad():
            torch._foreach_copy_(self._given, list(given))
            if self._is_on_gpu:
                self._graph.replay()
            else:
                self._made = list(self._work(self._given))
            torch._foreach_copy_(list(into), self._made)


NUM_STEPS = 10
"""The steps of a recording: half a window of the original's recipe."""

Address = Tuple[int, ...]
"""A tensor's address, shape and strides."""


class RecordedSteps(NamedTuple):
    """
    The recorded steps of an LSTM for `num_rows` sentences.

    It is valid for weights at `addresses` and for one `stream` of the GPU. The optional `parts` of
    a run are its recurrent weights, if they are its own, and its dropout mask.

    # Parameters

    forward : `Recording`
        Takes the `batch_tensors` of a run with these steps and sentences. Gives outputs and memory
        after each step; with a backward pass also gates, memory cells' outputs, and outputs before
        dropout; each of shape `(steps * rows, ...)`.
    backward : `Optional[Recording]`
        Takes memory before the first step; all results of `forward`, with the gradients of the
        outputs in place of the outputs and at the end; the gradients of the last state; and the
        run's parts. Gives the gradients of gates and projected outputs, of shape
        `(steps * rows, ...)`, and of the first state.
    """

    num_rows: int
    addresses: Tuple[Address, ...]
    memory_cells: MemoryCells
    stream: int
    forward: Recording
    backward: Optional[Recording]

    def milliseconds(self) -> float:
        """How long the steps take on a GPU, there and back."""
        recordings = [self.forward, *([] if self.backward is None else [self.backward])]
        return sum(recording.milliseconds() for recording in recordings)


def addresses_of(run: LstmRun) -> Tuple[Address, ...]:
    """The address, shape and strides of each matrix that a recording reads in place."""
    inputs, recurrent, projection = run.weights
    in_place = (inputs, projection) if run.has_own_weights else run.weights
    return tuple((weight.data_ptr(), *weight.shape, *weight.stride()) for weight in in_place)


def batch_tensors(run: LstmRun) -> List[torch.Tensor]:
    """
    The tensors that are copied for each replay: inputs, state, bias and the run's parts. All other
    matrices are read in place.
    """
    mask = run.recurrent_dropout_mask
    own = [run.weights.recurrent_weight] if run.has_own_weights else []
    return [run.inputs, *run.state, run.bias, *own, *([] if mask is None else [mask])]


def with_parts(run: LstmRun, parts: Sequence[torch.Tensor]) -> LstmRun:
    """The run with other parts, in the order of `batch_tensors`."""
    rest = list(parts)
    if run.has_own_weights:
        run = run._replace(weights=run.weights._replace(recurrent_weight=rest.pop(0)))
    return run._replace(recurrent_dropout_mask=rest.pop() if rest else None)


class StepRecorder(NamedTuple):
    """
    Records the `NUM_STEPS` steps of `run` for one `stream` of the GPU, by the kernels of `fused`,
    the module `lstm_steps`, if it is given. Besides the weights, only the shapes and types of the
    run's tensors matter.
    """

    run: LstmRun
    stream: int
    fused: Optional[ModuleType] = None

    @classmethod
    def like(cls, run: LstmRun, num_rows: int, stream: int) -> "StepRecorder":
        """A recorder for runs like `run`, of `num_rows` sentences."""

        def room(part: torch.Tensor, rows: int) -> torch.Tensor:
            return part.new_empty(1, 1).expand(rows, part.size(1))

        mask, weights = run.recurrent_dropout_mask, run.weights
        if run.has_own_weights:
            recurrent = weights.recurrent_weight
            weights = weights._replace(recurrent_weight=room(recurrent, len(recurrent)))
        recorded = run._replace(
            weights=weights,
            inputs=room(run.inputs, NUM_STEPS * num_rows),
            batch_sizes=[num_rows] * NUM_STEPS,
            state=LstmState(*(room(part, num_rows) for part in run.state)),
            recurrent_dropout_mask=None if mask is None else room(mask, num_rows),
        )
        return cls(recorded, stream)

    def recorded(self, needs_grad: bool) -> RecordedSteps:
        """Records the steps in the faster way, and the backward pass only if it is needed."""
        recorded = self._record(needs_grad)
        # Plain memory cells keep gates in another form.
        is_alike = recorded.memory_cells is not PLAIN
        fused = fused_kernels("lstm_steps", self.run.inputs.device) if is_alike else None
        if fused is None or not fused.can_fuse(self.run):
            return recorded
        own = self._replace(fused=fused)

        def faster() -> RecordedSteps:
            other = own._record(needs_grad)
            if not self._agree(recorded, other):
                return recorded
            if gpu.FUSES == "1":
                return other
            is_timed = self.run.inputs.is_cuda
            is_faster = is_timed and other.milliseconds() < CLEARLY * recorded.milliseconds()
            return other if is_faster else recorded

        try:
            return made_by_triton("lstm_steps", faster, RecordingError) or recorded
        except RecordingError as error:
            raise RecordingError(
                f"{error} (Of Triton's kernels; {FUSED_SWITCH}=0 does without these.)"
            ) from error

    def _record(self, needs_grad: bool) -> RecordedSteps:
        """Records the steps in its own way."""
        num_rows, (hidden, cell) = self.run.batch_sizes[0], self.run.state
        memory_cells = memory_cells_for(self.run.dtype, cell)
        forward = Recording(partial(self._forward, needs_grad), batch_tensors(self.run))
        recorded = RecordedSteps(
            num_rows, addresses_of(self.run), memory_cells, self.stream, forward, None
        )
        if not needs_grad:
            return recorded
        outputs, after, *kept = (part[0] for part in forward.room(1))
        parts = batch_tensors(self.run)[4:]
        given = [cell, after, *kept, outputs, hidden, cell, *parts]
        return recorded._replace(backward=Recording(self._backward, given))

    @torch.no_grad()
    def _agree(self, one: RecordedSteps, other: RecordedSteps) -> bool:
        """Whether both compute the same from random numbers, within rounding."""
        generator = torch.Generator(self.run.inputs.device).manual_seed(0)

        def random(like: torch.Tensor) -> torch.Tensor:
            numbers = like.new_empty(like.shape, dtype=torch.float32)
            return numbers.uniform_(-1.0, 1.0, generator=generator).to(like.dtype)

        def replayed(recording: Recording, given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
            made = recording.room(1)
            recording(given, [part[0] for part in made])
            return made

        given = list(map(random, batch_tensors(self.run)))
        made = [replayed(steps.forward, given) for steps in (one, other)]
        exact: Optional[List[torch.Tensor]] = None
        in_float32 = self._replace(run=self.run._replace(dtype=torch.float32))
        is_rounded = self.run.dtype != torch.float32
        if is_rounded:
            exact = in_float32._forward(one.backward is not None, given)
        if one.backward is not None and other.backward is not None:
            outputs, *histories = (part[0] for part in made[0])
            hidden, cell = (random(part) for part in self.run.state)
            given = [given[2], *histories, random(outputs), hidden, cell, *given[4:]]
            for steps, parts in zip((one.backward, other.backward), made):
                parts += replayed(steps, given)
            if exact is not None:
                exact += in_float32._backward(given)
        expected, found = ([part.squeeze(0) for part in parts] for parts in made)
        return agree("lstm_steps", expected, found, exact)

    def _forward(self, needs_grad: bool, given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        inputs, hidden, cell, bias, *parts = given
        run = with_parts(self.run, parts)._replace(
            inputs=inputs, state=LstmState(hidden, cell), bias=bias
        )
        if self.fused is not None:
            made: List[torch.Tensor] = self.fused.fused_steps(run, needs_grad)
            return made
        result = lstm_reference(run, LstmProducts.of(run), needs_grad=True)
        cells, cell_outputs, gates, projected = (result.kept[part::4] for part in range(4))
        # Without a backward pass only memory is needed.
        histories = [cells, gates, cell_outputs, projected] if needs_grad else [cells]
        return [result.outputs, *(torch.cat(list(parts)) for parts in histories)]

    def _backward(self, given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        before, *histories, d_outputs, d_hidden, d_cell = given[:8]
        run = with_parts(self.run, given[8:])._replace(state=LstmState(d_hidden, before))
        d_state = LstmState(d_hidden, d_cell)
        if self.fused is not None:
            made: List[torch.Tensor] = self.fused.fused_steps_backward(
                run, histories, d_outputs, d_state
            )
            return made
        memory_cells = memory_cells_for(self.run.dtype, before)
        kept = step_tensors(run, histories)
        back = lstm_reference_backward(memory_cells, run, kept, d_outputs, d_state)
        return [back.gates, back.projected, *back.state]


def step_tensors(run: LstmRun, histories: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    """
    Rebuilds the list that `lstm_reference` keeps of a run. `histories` are memory after each step,
    gates, memory cells' outputs and outputs before dropout, each of shape `(packed, ...)`.
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
    as many sentences as were recorded; results for padding are left out.
    """
    num_rows = recorded.num_rows
    grid = _grid(recorded, run)
    inputs, bias, parts = run.inputs, run.bias, _padded_parts(run, num_rows)
    hidden, cell = (_pad_rows(part, num_rows) for part in run.state)
    made = recorded.forward.room(grid.num_pieces)
    for own_inputs, *own in zip(grid.laid(inputs), *made):
        recorded.forward([own_inputs, hidden, cell, bias, *parts], own)
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
    """The backward pass by recordings. With `recorded` bound, it is an `LstmBackward`."""
    moved = recorded.addresses[1:] != addresses_of(run)[1:]
    if state_gradients is not None or moved:
        # Gradients of last states enter between recorded steps, and moved weights are no longer at
        # the addresses that the recording reads.
        return lstm_reference_backward(
            recorded.memory_cells, run, step_tensors(run, kept), output_gradients, state_gradients
        )
    assert recorded.backward is not None
    num_rows, before = recorded.num_rows, run.state.cell
    parts = _padded_parts(run, num_rows)
    d_hidden = before.new_zeros(num_rows, output_gradients.size(1))
    d_cell = before.new_zeros(num_rows, before.size(1))
    grid = _grid(recorded, run)
    laid = [grid.laid(part) for part in (*kept, output_gradients)]
    # Memory before the first step of each piece.
    cells = [_pad_rows(before, num_rows), *(part[-num_rows:] for part in laid[0][:-1])]
    made = recorded.backward.room(grid.num_pieces)
    for cell, *read, own in reversed([*zip(cells, *laid, zip(*made))]):
        recorded.backward([cell, *read, d_hidden, d_cell, *parts], own)
        *_, d_hidden, d_cell = own
    d_gates, d_projected = map(grid.picked, made[:2])
    d_state = LstmState(d_hidden[: len(before)], d_cell[: len(before)])
    return LstmGradients(d_gates, d_projected, kept[2].to(run.dtype), d_state)


def _grid(recorded: RecordedSteps, run: LstmRun) -> PaddedLayout:
    """The layout of a run over its recordings."""
    sizes, device = tuple(run.batch_sizes), run.inputs.device
    return grid_of(sizes, NUM_STEPS, recorded.num_rows, device, recorded.stream)


def _padded_parts(run: LstmRun, num_rows: int) -> List[torch.Tensor]:
    """The parts of a run, the mask with as many rows as were recorded."""
    mask = run.recurrent_dropout_mask
    if mask is not None:
        run = run._replace(recurrent_dropout_mask=_pad_rows(mask, num_rows))
    return batch_tensors(run)[4:]


def _pad_rows(part: torch.Tensor, num_rows: int) -> torch.Tensor:
    """Pads with rows of zeros."""
    if len(part) == num_rows:
        return part
    padded = part.new_zeros(num_rows, part.size(1))
    padded[: len(part)] = part
    return padded


DEVICES = recording_devices()
"""Types of devices on which recordings are made."""

NUMS_ROWS = (8, 32, 64, 128, 256)
"""The numbers of sentences for which recordings are made."""

MAX_GATES = 2**21
"""
The most gates of a step, over all sentences: 256 sentences of the released small model, 128 of the
original one. Larger steps keep a GPU busy without recordings, which would take gigabytes.
"""

MAX_RECORDINGS = 2 * len(NUMS_ROWS)
"""How many recordings are kept: enough for a training and its validation."""

MAX_MOVES = 16
"""
How often weights may move. Weights that move at every batch would need new recordings each time.
"""


class LstmGraphCache:
    """
    Makes recordings of an LSTM's steps and keeps the last ones. Copies and pickles start empty.
    """

    def __init__(self) -> None:
        self._kept: "OrderedDict[Hashable, RecordedSteps]" = OrderedDict()
        # Reentrant: making a recording may drop all of them.
        self._lock = threading.RLock()
        self._addresses: Set[Tuple[Address, ...]] = set()
        self._is_off = False

    def of(self, run: LstmRun, needs_grad: bool) -> Optional[RecordedSteps]:
        """
        The recording for such a run, made now if need be. `None` if the run can't be recorded, or
        if the GPU has no memory for it. Raises `RecordingError` if recording fails.
        """
        num_rows = _num_rows(len(run.state.cell), len(run.weights.recurrent_weight))
        if self._is_off or num_rows is None or not _can_be_recorded(run):
            return None
        device = run.inputs.device
        stream = torch.cuda.current_stream(device).cuda_stream if run.inputs.is_cuda else 0
        shape = (run.dtype, num_rows, run.clips, run.recurrent_dropout_mask is None)
        needs = (needs_grad, run.has_own_weights)
        key = (addresses_of(run), *shape, *needs, device, stream, product_rounding())
        with self._lock:
            if key not in self._kept:
                self._make(key, StepRecorder.like(run, num_rows, stream), needs_grad)
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        return found

    def forget(self) -> None:
        """Drops all recordings."""
        with self._lock:
            self._kept.clear()

    def _make(self, key: Hashable, recorder: StepRecorder, needs_grad: bool) -> None:
        """Makes and keeps one more recording, or turns recording off if that fails."""
        addresses = addresses_of(recorder.run)
        if addresses not in self._addresses:
            # Recordings of weights at their old addresses are never used again.
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
        """Turns recording off for good, with a warning."""
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


def _num_rows(num_sentences: int, num_gates: int) -> Optional[int]:
    """The rows of the recording for so many sentences; `None` if they are too many."""
    rows = next((number for number in NUMS_ROWS if number >= num_sentences), None)
    return None if rows is None or rows * num_gates > MAX_GATES else rows


def _can_be_recorded(run: LstmRun) -> bool:
    """
    Whether a run's tensors are ordinary float32 ones on one GPU that isn't being captured already.
    """
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
