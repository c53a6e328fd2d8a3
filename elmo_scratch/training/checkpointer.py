"""
A checkpointer whose checkpoints are whole or absent, with a lock on the folder of a training and a
clock that its workers share.
"""

import errno
import fcntl
import logging
import os
import shutil
import socket
import stat
import time
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Dict, List, MutableMapping, NoReturn, Optional, Set, TextIO, Tuple, Union
from weakref import WeakValueDictionary

import torch.distributed as dist
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.training import Checkpointer, GradientDescentTrainer, Trainer
from allennlp.training.trainer import TrainerCheckpoint
from torch.distributed.distributed_c10d import _get_default_store

from elmo_scratch.interop.archives.weights import (
    UNREADABLE,
    read_torch_file,
    reason_of,
    write_torch_file,
)
from elmo_scratch.training.environment import gathered, write_environment


class SharedClock:
    """
    Tells all workers after the same step that a time, in seconds from now, is over. The first
    worker looks at its own clock, and notes the number of the next step in the store of PyTorch's
    process group. The others look for this note after each step.

    A broadcast would serve too, but every worker would have to wait for it: where one worker has
    fewer batches to accumulate gradients of than the others, some would wait for ever.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._store = _get_default_store()
        self._is_first = dist.get_rank() == 0
        self._steps = 0
        self._over_at = 0
        self.restart()

    def restart(self) -> None:
        """Starts the time anew."""
        self._began = time.monotonic()
        self._began_after = self._steps

    def is_over(self) -> bool:
        """
        Returns whether the time is over, the same for all workers. Each worker has to call this
        after each step. No worker can end the next step before the first worker has called this,
        since a step needs the gradients of all.
        """
        self._steps += 1
        if self._is_first:
            is_over = self._steps == self._over_at
            if not is_over and time.monotonic() - self._began >= self._seconds:
                self._over_at = self._steps + 1
                # Unlike `set`, `add` returns only when the number is in the store.
                self._store.add(self._key(self._over_at), 1)
        else:
            is_over = self._store.check([self._key(self._steps)])
        # A note from right before the restart belongs to the time before.
        return is_over and self._steps > self._began_after + 1

    def _key(self, step: int) -> str:
        """The key that the store has if the time is over after this step."""
        return f"elmo_scratch/time_is_over/{step}"


LOCK = "training.lock"
"""The locked file in a training's folder. It names the process that trains, or trained last."""

MAX_NAME = 200
"""The number of characters that are read of the name of a process."""

HELD = (errno.EACCES, errno.EAGAIN)
"""The error numbers of a system if another process has the lock."""


_OPEN: MutableMapping[Tuple[int, int], TextIO] = WeakValueDictionary()
"""
The open lock files of this process, by device and inode. A file is never opened twice: closing one
of the two would release the lock of both.
"""


class TrainingLock:
    """
    Keeps other processes from training in a folder while the instance lives: a second training
    would remove what the first one is writing. Raises `ConfigurationError` if another process
    trains there.

    Children don't inherit the lock, unlike one of `filelock`: workers of a data loader may outlive
    a training that was killed. Within a process the lock keeps nobody out. Where files can't be
    locked, or the folder can't be written to, there is no lock.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._locked: Optional[os.stat_result] = None
        try:
            self._file = _opened(self._path)
        except OSError:
            return
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in HELD:
                return
            self._file.seek(0)
            raise ConfigurationError(
                f"{folder}: {self._file.read().strip() or 'another process'} trains there. Wait "
                "until it has ended, or stop it, and start again; or give this training another "
                "folder by -s."
            ) from error
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        self._file.flush()
        self._locked = os.fstat(self._file.fileno())

    def check(self) -> None:
        """
        Raises `ConfigurationError` if the folder was removed, together with the lock, and another
        training has begun in a new one of the same name.
        """
        with suppress(FileNotFoundError):
            if self._locked and not os.path.samestat(self._locked, os.stat(self._path)):
                raise ConfigurationError(
                    f"{self._path.parent}: another training has begun here since this one did, in "
                    "a new folder of the name. Nothing more is written to it."
                )


def training_process(folder: Path) -> Optional[str]:
    """
    The process that trains in a folder, such as `"process 17 on host"`; `None` if there is none, or
    files can't be locked. Nothing in the folder is changed.
    """
    path = folder / LOCK
    with suppress(OSError):
        there = os.stat(path)
        if not stat.S_ISREG(there.st_mode):
            return None
        # To close a second file of this process would release its lock.
        if (there.st_dev, there.st_ino) in _OPEN:
            return f"process {os.getpid()} on {socket.gethostname()}"
        with open(path, encoding="utf-8", errors="replace") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in HELD:
                    return file.read(MAX_NAME).strip() or "another process"
    return None


def end_training(folder: Path) -> None:
    """Releases the lock of a training in this process that has ended, which a report asks for."""
    with suppress(OSError):
        there = os.stat(folder / LOCK)
        file = _OPEN.pop((there.st_dev, there.st_ino), None)
        if file is not None:
            file.close()


def _opened(path: Path) -> TextIO:
    """Opens or creates the file of a lock."""
    with suppress(FileNotFoundError):
        there = os.stat(path)
        file = _OPEN.get((there.st_dev, there.st_ino))
        if file is not None:
            return file
    # The file must not be truncated before it is locked: it says who has the lock.
    file = open(path, "a+", encoding="utf-8")
    there = os.fstat(file.fileno())
    _OPEN[there.st_dev, there.st_ino] = file
    return file


logger = logging.getLogger(__name__)

Point = Tuple[int, int]
"""The place of a checkpoint: epochs completed, and batches completed in the next one."""

WRITTEN_WHOLE = ("*_state_e*_b*.th", "best.th", "metrics_epoch_*.json")
"""The files that this package writes to a training's folder, each under a temporary name first."""

WRITTEN_BESIDE, VOCABULARIES = ("model.tar.gz", "best.th"), ".vocabulary.*"
"""The files that `elmo_scratch_compat` writes there, and the temporary folders of vocabularies."""


@Checkpointer.register("elmo_scratch_whole")
class WholeCheckpointer(Checkpointer):
    """
    A version of AllenNLP's checkpointer that survives being killed while it saves.

    Each file is written under a temporary name and renamed when it is on the disk, the training
    state first and the model state last. A checkpoint counts when both are there; only then are
    older ones removed. The next start removes the remains of a save that was killed. If the newest
    checkpoint can't be read, training goes on from the one before. While a process trains in the
    folder, no other process can.

    In distributed training the callbacks' states of every worker are saved. On several machines
    each machine has its own checkpoints: older ones are removed when the new one is whole on all
    machines, and training goes on from the newest one that all machines have. Newer ones are
    renamed.

    Registered as a `Checkpointer` with name "elmo_scratch_whole".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    save_completed_epochs : `bool`, optional (default = `True`)
        Save at the end of each epoch.
    save_every_num_seconds : `float`, optional (default = `None`)
        Save after the first batch that ends so long after the last checkpoint. Distributed training
        goes by the clock of the first worker, and saves one batch later.
    save_every_num_batches : `int`, optional (default = `None`)
        Save when so many batches of an epoch were trained since the last checkpoint, at least 1.
    keep_most_recent_by_count : `int`, optional (default = `2`)
        The number of checkpoints to keep, at least 1. `None` keeps all.
    keep_most_recent_by_age : `int`, optional (default = `None`)
        Keep other checkpoints for so many seconds.

    # Raises

    ConfigurationError
        If one of the two counts is less than 1; if another process trains in the folder; if a
        checkpoint can't be written; if there are checkpoints, but none that all workers can read.
    """

    def __init__(
        self,
        serialization_dir: Union[str, os.PathLike],
        save_completed_epochs: bool = True,
        save_every_num_seconds: Optional[float] = None,
        save_every_num_batches: Optional[int] = None,
        keep_most_recent_by_count: Optional[int] = 2,
        keep_most_recent_by_age: Optional[int] = None,
    ) -> None:
        counts = (save_every_num_batches, keep_most_recent_by_count)
        if any(count is not None and count < 1 for count in counts):
            raise ConfigurationError(
                "expected `save_every_num_batches` and `keep_most_recent_by_count` of 1 or more, "
                "or null, but got {} and {}".format(*counts)
            )
        self._clock: Optional[SharedClock] = None
        if save_every_num_seconds is not None and is_distributed():
            # AllenNLP refuses `save_every_num_seconds` in distributed training.
            self._clock, save_every_num_seconds = SharedClock(save_every_num_seconds), None
        super().__init__(
            serialization_dir,
            save_completed_epochs=save_completed_epochs,
            save_every_num_seconds=save_every_num_seconds,
            save_every_num_batches=save_every_num_batches,
            keep_most_recent_by_count=keep_most_recent_by_count,
            keep_most_recent_by_age=keep_most_recent_by_age,
        )
        self._folder = Path(serialization_dir)
        # AllenNLP tells each worker the number of workers on its machine.
        num_local = os.environ.get("ALLENNLP_PROCS_PER_NODE")
        self._writes = self._rank % int(num_local) == 0 if num_local else self._rank == 0
        # Machines may share the folder; the first worker of all speaks for them.
        self._lock = TrainingLock(self._folder) if self._rank == 0 else None
        if self._is_primary:
            self._remove_leftovers()
        self._has_begun = False

    @property
    def _is_primary(self) -> bool:
        """Whether this worker looks after the files, as the first one of each machine does."""
        return self._writes

    def maybe_save_checkpoint(
        self, trainer: Trainer, num_epochs_completed: int, num_batches_in_epoch_completed: int
    ) -> bool:
        if self._is_primary and not self._has_begun:
            # Not before: a recovery that is refused leaves the folder as it was.
            write_environment(self._folder)
        self._has_begun = True
        is_time = self._clock is not None and self._clock.is_over()
        is_saved: bool = super().maybe_save_checkpoint(
            trainer, num_epochs_completed, num_batches_in_epoch_completed
        )
        if is_time and not is_saved:
            self.save_checkpoint(trainer)
            is_saved = True
        return is_saved

    def save_checkpoint(self, trainer: Trainer) -> None:
        assert isinstance(trainer, GradientDescentTrainer)
        if self._lock is not None:
            self._lock.check()
        point = (trainer._epochs_completed, trainer._batches_in_epoch_completed)
        state = trainer.get_checkpoint_state()
        self._writes = state is not None
        if state is None:
            callbacks = [callback.state_dict() for callback in trainer._callbacks]
            self._write(callbacks, self._worker_path(*point))
        if is_distributed():
            dist.barrier()
        if state is not None:
            model_path = Path(self._model_state_path(*point))
            # An unreadable model state may be in the place of the new one.
            model_path.unlink(missing_ok=True)
            self._write(state.trainer_state, Path(self._training_state_path(*point)))
            self._write(state.model_state, model_path)
        if is_distributed():
            # A checkpoint that is old here may be the newest one of another machine so far.
            dist.barrier()
        if state is not None:
            # AllenNLP finds both files, and so only records the checkpoint and removes old ones.
            super().save_checkpoint(trainer)
        self._last_saved(point)
        if self._clock is not None:
            self._clock.restart()

    def load_checkpoint(self) -> Optional[TrainerCheckpoint]:
        own = self._find_all_checkpoints()
        of_all = gathered(own)
        errors: Dict[Point, str] = {}
        for point in sorted(set.intersection(*of_all), reverse=True):
            checkpoint: Optional[TrainerCheckpoint] = None
            try:
                checkpoint = self._read(point)
            except UNREADABLE as error:
                files = f"{self._model_state_path(*point)} or its training state"
                errors[point] = f"{files}: {reason_of(error)}."
            if all(gathered(checkpoint is not None)):
                for newer in sorted(own):
                    if newer > point:
                        self._set_aside(newer, errors.get(newer))
                self._last_saved(point)
                return checkpoint
        if any(of_all):
            self._refuse(of_all, errors)
        return None

    def _refuse(self, of_all: List[Set[Point]], errors: Dict[Point, str]) -> NoReturn:
        """Raises the error for checkpoints of which none can be read by all workers."""
        if set.intersection(*of_all):
            damaged = {error: None for own in gathered(errors) for error in own.values()}
            raise ConfigurationError(
                f"{self._folder}: none of the checkpoints can be read, so there is nothing to "
                f"recover from. {' '.join(damaged)}"
            )
        named = "; ".join(
            f"worker {rank}: {', '.join(map(place_of, sorted(own))) or 'none'}"
            for rank, own in enumerate(of_all)
        )
        raise ConfigurationError(
            f"{self._folder}: expected a checkpoint that all workers have, to go on from, but they "
            f"have no one in common ({named}). Give each machine the folder that it wrote to."
        )

    def _find_all_checkpoints(self) -> Set[Point]:
        # AllenNLP takes `[1]` in the name of a folder for a pattern, and finds nothing there.
        pattern = f"model_state_e*_b*{f'_w{self._rank}' if self.state_is_sharded else ''}.th"
        points = (self._parse_model_state_path(path) for path in self._folder.glob(pattern))
        return {
            point
            for point in points
            if point is not None and os.path.isfile(self._training_state_path(*point))
        }

    def _remove_checkpoint(self, epochs_completed: int, batches_in_epoch_completed: int) -> None:
        # AllenNLP would remove batch 10 together with batch 1.
        for file in self._files(epochs_completed, batches_in_epoch_completed):
            file.unlink(missing_ok=True)

    def _read(self, point: Point) -> TrainerCheckpoint:
        model_state = read_torch_file(self._model_state_path(*point))
        training_state = read_torch_file(self._training_state_path(*point))
        worker_path = self._worker_path(*point)
        if not self._is_primary and worker_path.is_file():
            training_state["callbacks"] = read_torch_file(worker_path)
        return TrainerCheckpoint(model_state, training_state)

    def _write(self, state: Any, path: Path) -> None:
        try:
            write_torch_file(state, path)
        except OSError as error:
            raise ConfigurationError(
                f"{path}: the checkpoint can't be written: {error.strerror}. Those written before "
                "are as they were; make room, and go on with --recover."
            ) from error

    def _worker_path(self, epochs_completed: int, batches_in_epoch_completed: int) -> Path:
        """The file for the callbacks' states of a worker that is not a machine's first."""
        point = place_of((epochs_completed, batches_in_epoch_completed))
        return self._folder / f"training_state_{point}_w{self._rank}.th"

    def _files(self, epochs_completed: int, batches_in_epoch_completed: int) -> List[Path]:
        """Lists the files of a checkpoint. The model state comes first, to be removed first."""
        point = place_of((epochs_completed, batches_in_epoch_completed))
        return [
            file
            for name in ("model_state", "training_state")
            for workers in ("", "_w*")
            for file in sorted(self._folder.glob(f"{name}_{point}{workers}.th"))
        ]

    def _set_aside(self, point: Point, error: Optional[str]) -> None:
        """Renames a checkpoint that is newer than the one to go on from."""
        if error is not None:
            ending = "unreadable"
            logger.warning(
                "A checkpoint can't be read and is set aside (*.unreadable); going on from the "
                "one before. %s",
                error,
            )
        else:
            ending = "not_shared"
            logger.warning(
                "%s: not all machines have it whole, so it is set aside (*.not_shared); going on "
                "from the newest that all of them have.",
                self._model_state_path(*point),
            )
        if self._is_primary:
            for file in self._files(*point):
                file.rename(f"{file}.{ending}")

    def _last_saved(self, point: Point) -> None:
        self._last_save_num_epochs_completed, self._last_save_num_batches_in_epoch_completed = point

    def _remove_leftovers(self) -> None:
        """Removes the remains of a save that was killed."""
        for name in WRITTEN_WHOLE:
            for part in self._folder.glob(f".{name}.*.part"):
                _remove(part)
        for name in WRITTEN_BESIDE:
            # Older versions wrote them under names without a full stop at the beginning.
            for part in chain(
                self._folder.glob(f".{name}.*.part"), self._folder.glob(f"{name}.*.part")
            ):
                _remove(part)
        for unfinished in self._folder.glob(VOCABULARIES):
            _remove(unfinished)
        models = self._folder.glob("model_state_e*_b*.th")
        saved = {self._parse_model_state_path(file) for file in models}
        for file in self._folder.glob("training_state_e*_b*.th"):
            if self._parse_training_state_path(file) not in saved:
                file.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    """Removes a file, or a folder with all that is in it."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def place_of(point: Point) -> str:
    """Formats the place of a checkpoint as file names have it, such as `e1_b0`."""
    return "e{}_b{}".format(*point)
