"""AllenNLP's loader of batches by several processes."""

import functools
from typing import Any


def share_locks(loaders: Any) -> None:
    """
    The workers of a loader share the lock of their progress bars. AllenNLP makes it for forked
    processes, whatever the `start_method` is, and Python from 3.11.5 on refuses to hand such a lock
    to one that is spawned: "A SemLock created in a fork context is being shared with a process in a
    spawn context". Here the lock is one of the workers' own context.
    """
    for name in ("_start_instance_workers", "_start_batch_workers"):
        original = getattr(loaders.MultiProcessDataLoader, name)
        setattr(loaders.MultiProcessDataLoader, name, _with_locks(loaders, original))


def _with_locks(loaders: Any, original: Any) -> Any:
    """`original`, which finds the context of its workers under the module's name `mp`."""

    @functools.wraps(original)
    def start_workers(self: Any, queue: Any, ctx: Any) -> Any:
        multiprocessing, loaders.mp = loaders.mp, ctx
        try:
            return original(self, queue, ctx)
        finally:
            loaders.mp = multiprocessing

    return start_workers
