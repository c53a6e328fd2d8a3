"""Work on a GPU that is recorded once and replayed."""

import threading
from typing import Callable, List, Sequence

import torch

from elmo_scratch.kernels.lstm.cuda_graphs import SWITCH

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
