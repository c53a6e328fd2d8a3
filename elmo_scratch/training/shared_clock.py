"""A clock that the workers of a distributed training share."""

import time

import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store


class SharedClock:
    """
    Tells all workers after the same step that a time is over. The first worker sees by its own
    clock that it is, and notes the number of the next step in the store through which the workers
    have met; there the others look after each step.

    A broadcast would be answered after the same step, but all would have to wait for it: where one
    worker has fewer batches than the others to accumulate gradients of, some would wait for ever.

    # Parameters

    seconds : `float`
        How long the time is. It begins here.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._store = _get_default_store()
        self._is_first = dist.get_rank() == 0
        self._steps = 0
        self._over_at = 0
        self.restart()

    def restart(self) -> None:
        """Lets the time begin once more."""
        self._began = time.monotonic()
        self._began_after = self._steps

    def is_over(self) -> bool:
        """
        To be called by each worker after each step, where no worker can end the next step before
        the first one has called this: it takes the gradients of all.

        # Returns

        `bool`
            Whether the time is over, the same for all workers.
        """
        self._steps += 1
        if self._is_first:
            is_over = self._steps == self._over_at
            if not is_over and time.monotonic() - self._began >= self._seconds:
                self._over_at = self._steps + 1
                # Unlike `set` it comes back when the number is there.
                self._store.add(self._key(self._over_at), 1)
        else:
            is_over = self._store.check([self._key(self._steps)])
        # What was noted right before the time began anew is of the time before.
        return is_over and self._steps > self._began_after + 1

    def _key(self, step: int) -> str:
        """What the store has if the time is over after this step."""
        return f"elmo_scratch/time_is_over/{step}"
