"""AllenNLP's trainer, schedulers and callbacks."""

import errno
import fcntl
import functools
import inspect
import os
import socket
import struct
import warnings
from contextlib import ExitStack
from glob import escape as glob_escape
from glob import glob
from importlib import import_module
from typing import Any, Dict, List, Optional

from elmo_scratch_compat.sparse_gradients import clip_sparse, clip_sparse_norms
from elmo_scratch_compat.terminal import epoch_line, is_quiet, tell
from elmo_scratch_compat.unfinished import remove_leftovers, unfinished
from elmo_scratch_compat.whole_files import written_beside

LOCK = "training.lock"
"""The file that the checkpointer `elmo_scratch_whole` keeps locked in a training's folder."""

WEIGHTS = ("best.th", "model_state_*.th")
"""The files of weights that a training writes."""

FOLDER_CAME_BACK = "elmo_scratch_folder_came_back"
"""Set on what has ended a training with `--force` before it replaced its folder."""

INTERFACE = "GLOO_SOCKET_IFNAME"
"""The environment variable by which gloo is told the network that connects processes."""

LOOPBACK = 127
"""The first byte of addresses by which a machine reaches itself, as its own name often does."""

SIOCGIFADDR = 0x8915
"""Asks Linux for the address of a network interface (netdevice(7))."""


def clip_sparse_norms_and_keep_folders(util: Any) -> None:
    """Patches the functions that all trainings share."""
    clip_sparse_norms(util)
    keep_folders_of_trainings(util)


def clip_sparse_and_keep_best_weights(trainer: Any) -> None:
    """Patches the trainer."""
    clip_sparse(trainer)
    keep_best_weights(trainer)
    measure_speed(trainer)


def keep_best_weights(trainer: Any) -> None:
    """
    AllenNLP writes the weights of a better epoch into the `best.th` of an earlier one, where they
    come without a checkpoint or are those of a moving average. Killed in that moment, or where the
    disk is full, a training had neither. Where the file was another name of the last checkpoint's,
    that changed with it. Here the new file takes the place of the old one when it is whole.
    """
    original = trainer.GradientDescentTrainer._save_model_state

    @functools.wraps(original)
    def _save_model_state(self: Any, path: str) -> None:
        with written_beside(path) as part:
            original(self, part)

    trainer.GradientDescentTrainer._save_model_state = _save_model_state


def measure_speed(trainer: Any) -> None:
    """
    AllenNLP measures how long an epoch took and not how much was read, so that a report can't tell
    how fast a task's model was trained. Where the model has a part of the package, the callback
    `elmo_scratch_speed` is one of the trainer's default callbacks.
    """
    original = trainer.GradientDescentTrainer.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        parts = {type(part).__module__.partition(".")[0] for part in self.model.modules()}
        if "elmo_scratch" in parts and kwargs.get("enable_default_callbacks", True):
            # The plugin's half: it counts tokens.
            speed = import_module("elmo_scratch.training").Speed
            if not any(isinstance(callback, speed) for callback in self._callbacks):
                self._callbacks.append(speed(self._serialization_dir, may_be_unknown=True))

    trainer.GradientDescentTrainer.__init__ = __init__


def keep_folders_of_trainings(util: Any) -> None:
    """
    With `--force` AllenNLP removes a folder in which another process trains. That one would write
    its next checkpoints beside those of the new training, which takes them for its own.

    With `--recover` a training writes no file of its finished epochs again, so that what a killed
    one has left beside them would stay. It goes here.
    """
    original = util.create_serialization_dir

    @functools.wraps(original)
    def create_serialization_dir(
        params: Any, serialization_dir: Any, recover: bool, force: bool
    ) -> None:
        if force:
            refuse_running(serialization_dir)
        original(params, serialization_dir, recover, force)
        if recover:
            remove_leftovers(serialization_dir)

    util.create_serialization_dir = create_serialization_dir


def refuse_running(folder: str) -> None:
    """Raises `ConfigurationError` if another process trains in a folder that shall be replaced."""
    if is_locked(os.path.join(folder, LOCK)):
        raise import_module("allennlp.common.checks").ConfigurationError(
            f"{folder}: another process trains there. Wait until it has ended, or stop it, before "
            "its folder is removed by --force; or give this training another folder by -s."
        )


def replace_when_training_begins(train: Any) -> None:
    """
    With `--force` AllenNLP removes a folder before it reads the data and builds the model, so that
    a misspelt setting costs a finished training. Here the folder is kept under a hidden name until
    the first epoch begins, and comes back after an earlier error or interruption. Several
    processes, links, the current folder and dry runs are left to AllenNLP.
    """
    original, run = train.train_model, train.TrainModel.run
    kept: List[ExitStack] = []

    @functools.wraps(original)
    def train_model(
        params: Any,
        serialization_dir: Any,
        recover: bool = False,
        force: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        train_anew = functools.partial(
            original, params, serialization_dir, recover, force, *args, **kwargs
        )
        folder = os.path.realpath(serialization_dir)
        can_be_kept = (
            os.path.isdir(folder)
            and os.path.abspath(serialization_dir) == folder
            and os.path.commonpath([folder, os.getcwd()]) != folder
        )
        if recover or not (force and can_be_kept) or "distributed" in params:
            return train_anew()
        refuse_running(serialization_dir)
        with ExitStack() as old:
            kept_at = old.enter_context(unfinished(folder))
            try:
                os.rename(folder, kept_at)
            except OSError:  # Another disk is mounted there, for example.
                return train_anew()
            kept.append(old)
            try:
                return train_anew()
            except BaseException as error:
                if old in kept and _bring_back(kept_at, folder):
                    setattr(error, FOLDER_CAME_BACK, True)
                raise
            finally:
                if old in kept:
                    kept.remove(old)

    @functools.wraps(run)
    def run_and_replace(self: Any) -> Any:
        while kept:
            kept.pop().close()
        return run(self)

    train.train_model, train.TrainModel.run = train_model, run_and_replace


def _bring_back(kept_at: str, folder: str) -> bool:
    """
    Puts a folder back in the place of what a training that was refused has written, or beside it
    where another process trains in that place by now, or weights were written: a class of its own
    may train without this package's noticing. Returns whether it is back in its place.
    """
    has_weights = any(glob(os.path.join(glob_escape(folder), name)) for name in WEIGHTS)
    if os.path.lexists(folder) and not is_locked(os.path.join(folder, LOCK)) and not has_weights:
        os.rename(folder, f"{kept_at}.refused")
    try:
        os.rename(kept_at, folder)
    except OSError:  # The place is taken.
        place = f"{folder}.{os.getpid()}"
        os.rename(kept_at, place)
        tell(f"what was in {folder} is in {place}")
        return False
    tell(f"{folder} is as it was")
    return True


def share_processors(train: Any) -> None:
    """
    Each of several processes that train on the processors of a machine would compute by as many
    threads as there are processors, which wait for each other. Here they share these, unless
    `OMP_NUM_THREADS` says how many threads each has.
    """
    original = train._train_worker
    signature = inspect.signature(original)

    @functools.wraps(original)
    def _train_worker(*args: Any, **kwargs: Any) -> Any:
        import torch

        devices = signature.bind(*args, **kwargs).arguments.get("distributed_device_ids") or []
        num_on_processors = sum(_is_processor(device) for device in devices)
        if num_on_processors > 1 and "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(max(1, torch.get_num_threads() // num_on_processors))
        return original(*args, **kwargs)

    train._train_worker = _train_worker


def meet_on_one_network(train: Any) -> None:
    """
    Processes on several machines connect by gloo, to which each machine has the address of its own
    name. That often starts with 127, where no other machine finds it, and the training ends before
    it begins. Here they connect by the network on which the first machine lies, unless
    `GLOO_SOCKET_IFNAME` names another one.
    """
    original = train._train_worker
    signature = inspect.signature(original)

    @functools.wraps(original)
    def _train_worker(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        devices = given.arguments["distributed_device_ids"] or []
        if given.arguments["world_size"] > max(1, len(devices)) and INTERFACE not in os.environ:
            name = interface_to(given.arguments["primary_addr"])
            if name is not None:
                os.environ[INTERFACE] = name
        return original(*args, **kwargs)

    train._train_worker = _train_worker


def interface_to(address: str) -> Optional[str]:
    """
    The network interface by which this machine reaches an address of IPv4, or which has this
    address itself; `None` if there is none, or the address is one of this machine alone.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the system only chooses a route.
            probe.connect((address, 1))
            own = socket.inet_aton(probe.getsockname()[0])
        except OSError:
            return None
        if own[0] == LOOPBACK:
            return None
        for _, name in socket.if_nameindex():
            # A struct ifreq: a name, then a struct sockaddr_in, whose address follows its port.
            request = struct.pack("256s", name.encode())
            try:
                found = fcntl.ioctl(probe, SIOCGIFADDR, request)
            except OSError:  # It has no address.
                continue
            if found[20:24] == own:
                return name
    return None


def _is_processor(device: Any) -> bool:
    """Whether a device in a config is the CPU, which AllenNLP calls -1."""
    return device == -1 or str(device) == "cpu"


def is_locked(path: str) -> bool:
    """Whether another process has locked a file."""
    try:
        with open(path, "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EAGAIN) and os.access(path, os.W_OK)
    return False


def print_numbers_only(console_logger: Any) -> None:
    """
    AllenNLP's default callback formats every metric as a number, and prints a traceback at the end
    of each epoch when a metric is a list, such as a confusion matrix. A quiet
    command prints one line in place of the table, which the log file has.
    """
    callback = console_logger.ConsoleLoggerCallback
    on_epoch = callback.on_epoch

    @functools.wraps(on_epoch)
    def on_epoch_with_numbers(
        self: Any,
        trainer: Any,
        metrics: Dict[str, Any],
        epoch: int,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        numbers = {name: value for name, value in metrics.items() if hasattr(value, "__float__")}
        on_epoch(self, trainer, numbers, epoch, is_primary, **kwargs)
        if is_primary and is_quiet():
            tracked = [name for _, name in trainer._metric_tracker.tracked_metrics]
            tell(epoch_line(metrics, tracked, epoch, trainer._num_epochs))

    callback.on_epoch = on_epoch_with_numbers


def drop_verbose(schedulers: Any) -> None:
    """
    PyTorch 2.7 took the argument `verbose` from `ReduceLROnPlateau`; AllenNLP's scheduler
    "reduce_on_plateau" always passes it. It only ever printed, so it is dropped.
    """
    scheduler = schedulers.ReduceOnPlateauLearningRateScheduler
    original = scheduler.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        import torch

        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        settings = {
            name: value
            for name, value in bound.arguments.items()
            if name not in ("self", "verbose")
        }
        super(scheduler, self).__init__(torch.optim.lr_scheduler.ReduceLROnPlateau(**settings))

    scheduler.__init__ = __init__


def accept_old_autocast(trainer: Any) -> None:
    """
    PyTorch 2.4 moved `torch.cuda.amp.autocast` to `torch.amp`, and warns of the old name in every
    training, in full precision too. Both do the same. Other users of the old name are still warned.
    """
    warnings.filterwarnings(
        "ignore",
        message=r"`torch\.cuda\.amp\.",
        category=FutureWarning,
        module=r"allennlp\.(nn|training)\.",
    )
