"""Checkpoints that are whole, whatever moment the training is killed in."""

import logging
import os
import pickle
import zipfile
import zlib
from pathlib import Path
from typing import Any, List, Optional, Set, Tuple, Union

import torch
import torch.distributed as dist
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.training import Checkpointer, GradientDescentTrainer, Trainer
from allennlp.training.trainer import TrainerCheckpoint

from elmo_scratch.whole_file import whole_file

logger = logging.getLogger(__name__)

UNREADABLE = (
    *(OSError, EOFError, RuntimeError, ValueError, LookupError),
    *(pickle.UnpicklingError, zipfile.BadZipFile, zlib.error),
)
"""What reading a damaged file may raise."""


WRITTEN_WHOLE = ("*_state_e*_b*.th", "best.th", "metrics_epoch_*.json")
"""What this package writes to the folder of a training, each file beside its place at first."""


@Checkpointer.register("elmo_scratch_whole")
class WholeCheckpointer(Checkpointer):
    """
    As AllenNLP's checkpointer, but each file is written beside its place and moved there when it is
    on the disk, the training state first and the model state last. A checkpoint counts when both
    are there, and an older one is removed only then. What a killed save has left is removed at the
    next start. Where the newest checkpoint can't be read, training goes on from the one before.

    In distributed training the states of the callbacks of each worker are kept.

    Registered as a `Checkpointer` with name "elmo_scratch_whole".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    save_completed_epochs : `bool`, optional (default = `True`)
        Save at the end of each epoch.
    save_every_num_seconds : `float`, optional (default = `None`)
        Save after the first batch that ends so long after the last checkpoint.
    save_every_num_batches : `int`, optional (default = `None`)
        Save when so many batches of an epoch were trained since the last checkpoint.
    keep_most_recent_by_count : `int`, optional (default = `2`)
        How many checkpoints to keep. `None` keeps all.
    keep_most_recent_by_age : `int`, optional (default = `None`)
        For how many seconds to keep a checkpoint that is not among these.

    # Raises

    ConfigurationError
        If checkpoints are asked for by time in distributed training, where the clocks of the
        workers differ; if a checkpoint can't be written; if there are some, but none can be read.
    """

    _writes = False
    """Whether the trainer of this worker hands its state over to be written."""

    def __init__(
        self,
        serialization_dir: Union[str, os.PathLike],
        save_completed_epochs: bool = True,
        save_every_num_seconds: Optional[float] = None,
        save_every_num_batches: Optional[int] = None,
        keep_most_recent_by_count: Optional[int] = 2,
        keep_most_recent_by_age: Optional[int] = None,
    ) -> None:
        if save_every_num_seconds is not None and is_distributed():
            raise ConfigurationError(
                "`save_every_num_seconds` works in one process only: the workers of a distributed "
                "training would save at different batches. Use `save_every_num_batches` instead."
            )
        super().__init__(
            serialization_dir,
            save_completed_epochs=save_completed_epochs,
            save_every_num_seconds=save_every_num_seconds,
            save_every_num_batches=save_every_num_batches,
            keep_most_recent_by_count=keep_most_recent_by_count,
            keep_most_recent_by_age=keep_most_recent_by_age,
        )
        self._folder = Path(serialization_dir)
        if self._is_primary:
            self._remove_leftovers()

    @property
    def _is_primary(self) -> bool:
        """Whether this worker looks after the files: the first one of each machine does."""
        return self._rank == 0 or self._writes

    def save_checkpoint(self, trainer: Trainer) -> None:
        assert isinstance(trainer, GradientDescentTrainer)
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
            # One that could not be read may stand here.
            model_path.unlink(missing_ok=True)
            self._write(state.trainer_state, Path(self._training_state_path(*point)))
            self._write(state.model_state, model_path)
            # It finds both files there, and only keeps its accounts and removes old checkpoints.
            super().save_checkpoint(trainer)
        self._last_saved(point)

    def load_checkpoint(self) -> Optional[TrainerCheckpoint]:
        checkpoint: Optional[TrainerCheckpoint] = None
        error: Optional[ConfigurationError] = None
        place = "no checkpoint"
        try:
            newest = self._newest()
        except ConfigurationError as reason:
            error, place = reason, "none that can be read"
        else:
            if newest is not None:
                point, checkpoint = newest
                place = "e{}_b{}".format(*point)
        if is_distributed():
            self._check_agreement(place)
        if error is not None:
            raise error
        return checkpoint

    def _newest(self) -> Optional[Tuple[Tuple[int, int], TrainerCheckpoint]]:
        """The newest checkpoint that can be read, if there is any, and its place."""
        damaged: List[Tuple[int, int]] = []
        errors: List[str] = []
        for point in sorted(self._find_all_checkpoints(), reverse=True):
            try:
                checkpoint = self._read(point)
            except UNREADABLE as error:
                damaged.append(point)
                # PyTorch goes on to advise to run what the file holds.
                why = str(error).partition(". ")[0]
                errors.append(f"{self._model_state_path(*point)} or its training state: {why}.")
                continue
            for other, message in zip(damaged, errors):
                logger.warning(
                    "A checkpoint can't be read and is set aside (*.unreadable); going on from the "
                    "one before. %s",
                    message,
                )
                self._set_aside(other)
            self._last_saved(point)
            return point, checkpoint
        if damaged:
            raise ConfigurationError(
                f"{self._folder}: none of the checkpoints can be read, so there is nothing to "
                f"recover from. {' '.join(errors)}"
            )
        return None

    def _check_agreement(self, place: str) -> None:
        """An error if the workers would go on from different checkpoints."""
        places: List[Optional[str]] = [None] * dist.get_world_size()
        dist.all_gather_object(places, place)
        if len(set(places)) > 1:
            named = ", ".join(f"worker {rank}: {own}" for rank, own in enumerate(places))
            raise ConfigurationError(
                f"{self._folder}: expected all workers to go on from one checkpoint, but their "
                f"newest whole ones differ ({named}). Remove those that not all of them have."
            )

    def _find_all_checkpoints(self) -> Set[Tuple[int, int]]:
        return {
            point
            for point in super()._find_all_checkpoints()
            if os.path.isfile(self._training_state_path(*point))
        }

    def _remove_checkpoint(self, epochs_completed: int, batches_in_epoch_completed: int) -> None:
        # AllenNLP would remove batch 10 together with batch 1.
        for file in self._files(epochs_completed, batches_in_epoch_completed):
            file.unlink()

    def _read(self, point: Tuple[int, int]) -> TrainerCheckpoint:
        model_state = read_checked(self._model_state_path(*point))
        training_state = read_checked(self._training_state_path(*point))
        worker_path = self._worker_path(*point)
        if not self._is_primary and worker_path.is_file():
            training_state["callbacks"] = read_checked(worker_path)
        return TrainerCheckpoint(model_state, training_state)

    def _write(self, state: Any, path: Path) -> None:
        try:
            with whole_file(path) as part, open(part, "wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
        except (OSError, RuntimeError) as error:
            # PyTorch covers the error of the system by one of its own when it closes the file.
            cause = error if isinstance(error, OSError) else error.__context__
            if not isinstance(cause, OSError):
                raise
            raise ConfigurationError(
                f"{path}: the checkpoint can't be written: {cause.strerror}. Those written before "
                "are as they were; make room, and go on with --recover."
            ) from cause
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _worker_path(self, epochs_completed: int, batches_in_epoch_completed: int) -> Path:
        """Where a worker that is not the first keeps the states of its callbacks."""
        name = f"training_state_e{epochs_completed}_b{batches_in_epoch_completed}_w{self._rank}.th"
        return self._folder / name

    def _files(self, epochs_completed: int, batches_in_epoch_completed: int) -> List[Path]:
        """The files of a checkpoint, the model state first: without it the others don't count."""
        point = f"e{epochs_completed}_b{batches_in_epoch_completed}"
        return [
            file
            for name in ("model_state", "training_state")
            for workers in ("", "_w*")
            for file in sorted(self._folder.glob(f"{name}_{point}{workers}.th"))
        ]

    def _set_aside(self, point: Tuple[int, int]) -> None:
        if self._is_primary:
            for file in self._files(*point):
                file.rename(f"{file}.unreadable")

    def _last_saved(self, point: Tuple[int, int]) -> None:
        self._last_save_num_epochs_completed, self._last_save_num_batches_in_epoch_completed = point

    def _remove_leftovers(self) -> None:
        """Removes what a save that was killed has left."""
        for name in WRITTEN_WHOLE:
            for part in self._folder.glob(f".{name}.*.part"):
                part.unlink()
        models = self._folder.glob("model_state_e*_b*.th")
        saved = {self._parse_model_state_path(file) for file in models}
        for file in self._folder.glob("training_state_e*_b*.th"):
            if self._parse_training_state_path(file) not in saved:
                file.unlink()


def read_checked(path: Union[str, Path]) -> Any:
    """What `torch.save` has written to a file, if its checksums are right."""
    # PyTorch writes them, but doesn't compare them.
    with zipfile.ZipFile(path) as file:
        damaged = file.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"the checksum of {damaged} is wrong")
    return torch.load(path, map_location="cpu", weights_only=True)
