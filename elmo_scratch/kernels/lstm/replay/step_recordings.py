"""The recordings of one LSTM."""

import logging
import threading
from collections import OrderedDict
from typing import Any, Hashable, Optional, Set, Tuple

import torch

from elmo_scratch.kernels.lstm.cuda_graphs import recording_devices
from elmo_scratch.kernels.lstm.kept_run import LstmRun
from elmo_scratch.kernels.lstm.replay.recorded_steps import (
    Address,
    RecordedSteps,
    StepRecorder,
    addresses_of,
    batch_tensors,
)
from elmo_scratch.kernels.native_library import is_plain

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


class StepRecordings:
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

    def __deepcopy__(self, _: object) -> "StepRecordings":
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
