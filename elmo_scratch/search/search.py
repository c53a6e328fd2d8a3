"""A search: trains a config with many values, one training after the other or several at a time."""

import json
import logging
import math
import os
import re
import shutil
import sys
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import parse_overrides, with_overrides
from allennlp.models.archival import archive_model
from filelock import FileLock, Timeout

from elmo_scratch.files.machine import num_processors
from elmo_scratch.search.study import next_trial, num_tried, open_study, study_errors
from elmo_scratch.search.sweep import Metric, Sweep
from elmo_scratch.search.tasks import ProcessGroup, stop_left_over

logger = logging.getLogger(__name__)


RESULT = "metrics.json"
"""The file that AllenNLP writes at the end of a training, right before the archive."""

NO_RESULT = f"ended without a whole {RESULT}"
"""The reason given for a training that ended with status 0, but failed."""

LAST_LINES = 5
"""The number of lines of a training's log that are shown when it fails."""


class TrialFolder(ABC):
    """
    A training, known by its folder and the log beside it. Abstract.

    # Parameters

    folder : `Path`
        The folder that the training writes to. The log is `<folder>.log`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder.with_name(f"{folder.name}.log")
        self._reported = 0

    @abstractmethod
    def has_ended(self) -> bool:
        """Whether the training is over, successfully or not."""

    @abstractmethod
    def has_failed(self) -> bool:
        """Whether the training is over, but has no result."""

    @abstractmethod
    def stop(self) -> None:
        """Kills the training, if it is not over."""

    @abstractmethod
    def _untold(self) -> List[str]:
        """Returns lines about a failure that the training can't print itself."""

    def has_result(self) -> bool:
        """Whether the folder has a readable `metrics.json`."""
        try:
            json.loads((self.folder / RESULT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return True

    def result(self, metric: Metric) -> float:
        """
        Returns the metric of a training that has completed. Raises `ConfigurationError` if the
        training doesn't measure it.
        """
        return metric.of(self.folder / RESULT)

    def new_epochs(self, metric: Metric) -> Iterator[Tuple[int, float]]:
        """
        Yields `(epoch, metric)` for each epoch since the last call, epochs counted from 1. Epochs
        before the first validation count, but are left out. Raises `ConfigurationError` if the
        training doesn't measure the metric.
        """
        for file in _epochs(self.folder)[self._reported :]:
            try:
                value = metric.so_far(file)
            except json.JSONDecodeError:  # it is being written
                return
            self._reported += 1
            if value is not None:
                yield self._reported, value

    def last_lines(self) -> str:
        """Returns the last lines of the log, and what the training couldn't print itself."""
        printed = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        printed += self._untold()
        return "\n".join([line for line in printed if line.strip()][-LAST_LINES:])


def _epochs(folder: Path) -> List[Path]:
    """Returns the metrics files of all epochs that are over, in order."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    numbers = [re.fullmatch(r"metrics_epoch_(\d+)\.json", name) for name in names]
    in_order = sorted(int(number[1]) for number in numbers if number)
    return [folder / f"metrics_epoch_{number}.json" for number in in_order]


class EndedTraining(TrialFolder):
    """A training that is over; its folder is all that is known of it."""

    def has_ended(self) -> bool:
        return True

    def has_failed(self) -> bool:
        return not self.has_result()

    def stop(self) -> None:
        """Does nothing: the training is over."""

    def pack(self, more: Optional[List[str]]) -> None:
        """
        Makes the archive, if the training was killed after its result and before its archive.
        `more` is the config's `include_in_archive`.
        """
        is_missing = not (self.folder / "model.tar.gz").exists()
        if is_missing and (self.folder / "best.th").exists():
            archive_model(self.folder, include_in_archive=more)

    def _untold(self) -> List[str]:
        return [] if self.has_result() else [NO_RESULT]


ALLENNLP = (sys.executable, "-m", "allennlp")
"""The command that starts AllenNLP in this Python environment."""


class TrialTraining(TrialFolder):
    """
    Runs `allennlp train`, whose output goes to the log beside its folder. The folder must be new,
    or `arguments` hold `--recover`. `num_threads` are processor threads; `OMP_NUM_THREADS` in the
    environment comes first.
    """

    def __init__(
        self,
        folder: Path,
        config: Path,
        overrides: Dict[str, Any],
        arguments: Sequence[str] = (),
        num_threads: Optional[int] = None,
    ) -> None:
        super().__init__(folder)
        environment = dict(os.environ)
        if num_threads is not None:
            environment.setdefault("OMP_NUM_THREADS", str(num_threads))
        command = [*ALLENNLP, "train", str(config), "-s", str(folder)]
        command += ["--overrides", json.dumps(overrides), *arguments]
        self._processes = ProcessGroup(command, self.log, environment)

    @property
    def pid(self) -> int:
        """The id of the training's process group."""
        return self._processes.pid

    def has_ended(self) -> bool:
        return self._processes.status is not None

    def has_failed(self) -> bool:
        status = self._processes.status
        return status is not None and (status != 0 or not self.has_result())

    def stop(self) -> None:
        self._processes.stop()

    def _untold(self) -> List[str]:
        """Names the signal that ended the training, or says that it left no result."""
        status = self._processes.status
        if status is not None and status < 0:
            return [f"ended by signal {-status}"]
        return [NO_RESULT] if status == 0 and not self.has_result() else []


if TYPE_CHECKING:
    import optuna

SECONDS = 0.2
"""The time between two looks at the trainings."""


class Running(NamedTuple):
    """A trial and its training."""

    trial: "optuna.Trial"
    training: TrialFolder


class Search:
    """
    Trains a config again and again, each time with other values of a sweep's parameters.

    All trials stay in the folder, and a search that was stopped goes on there. A training that was
    interrupted goes on from its last checkpoint if the config's `checkpointer` is
    `elmo_scratch_whole`, and begins anew with others, whose last checkpoint may be unreadable.

    # Parameters

    sweep : `Sweep`
        The method, the metric and the parameters.
    config : `Path`
        The config to train.
    folder : `Path`
        The folder of the study, and of the folder `trial-<number>` of each training.
    overrides : `str`, optional (default = `""`)
        Other changes to the config, as for `allennlp train`.
    seed : `int`, optional (default = `0`)
        The seed for drawing values. The trainings have their own seeds.
    arguments : `Sequence[str]`, optional (default = `()`)
        More words for the command line of each training.

    # Raises

    ConfigurationError
        If the config can't be read, or can't take the overrides or the sweep's parameters.
    """

    def __init__(
        self,
        sweep: Sweep,
        config: Path,
        folder: Path,
        overrides: str = "",
        seed: int = 0,
        arguments: Sequence[str] = (),
    ) -> None:
        self.sweep = sweep
        self.folder = folder
        self._path = config
        if config.is_dir():  # Jsonnet would end the process
            raise ConfigurationError(f"{config}: expected a config, but it is a folder")
        try:
            self.overrides: Dict[str, Any] = parse_overrides(overrides)
            if not isinstance(self.overrides, dict):
                raise ConfigurationError(
                    f"expected --overrides to be a JSON object, but got {overrides}"
                )
            file = Params.from_file(str(config)).as_dict(quiet=True)
            self._config = with_overrides(file, self.overrides)
        except (OSError, RuntimeError, ValueError) as error:
            # Jsonnet's errors have a line for each call, the second of which says where it is.
            reason = " ".join(" ".join(str(error).splitlines()[:2]).split())
            raise ConfigurationError(f"{config}: {reason}") from None
        try:  # Each training merges the same names, whatever their values.
            with_overrides(file, {**self.overrides, **dict.fromkeys(sweep.parameters)})
        except ValueError as error:
            raise ConfigurationError(
                f"{config}: can't take the parameters of the sweep beside the overrides: {error}"
            ) from None
        self._seed = seed
        self._arguments = arguments

    def run(self, num_trials: Optional[int] = None, num_jobs: int = 1) -> "optuna.Study":
        """
        # Parameters

        num_trials : `int`, optional (default = the `run_cap` of the sweep)
            The number of trials in the end, earlier ones included; at most the size of a grid.
        num_jobs : `int`, optional (default = `1`)
            The number of trainings at a time. They share the processor's threads.

        # Returns

        `optuna.Study`
            The study with all trials. Failed trainings are in it, with the last lines of their log.

        # Raises

        ConfigurationError
            If Optuna is not installed, no number of trials is given, another search runs in the
            folder or has left its study there, or trainings don't measure the metric.
        """
        for argument, number in (("--trials", num_trials), ("--jobs", num_jobs)):
            if number is not None and number < 1:
                raise ConfigurationError(f"expected {argument} of 1 or more, got {number}")
        num_trials = self._num_trials(num_trials)
        self.folder.mkdir(parents=True, exist_ok=True)
        with _alone_in(self.folder):
            study = open_study(self.folder, self.sweep, self._config, self._seed)
            interrupted = _interrupted(study)
            num_new = max(0, num_trials - num_tried(study))
            with study_errors(self.folder):
                self._try(study, interrupted, num_new, num_jobs)
        return study

    def _try(
        self, study: "optuna.Study", interrupted: List["optuna.Trial"], num_new: int, num_jobs: int
    ) -> None:
        """Trains the interrupted trials, and `num_new` new ones."""
        running: List[Running] = []
        try:
            while interrupted or num_new or running:
                while len(running) < num_jobs and (interrupted or num_new):
                    if interrupted:
                        running.append(self._go_on(interrupted.pop(), num_jobs))
                    else:
                        trial = next_trial(study, self.sweep)
                        num_new -= 1
                        running.append(Running(trial, self._start(trial, num_jobs)))
                time.sleep(SECONDS)
                running = [one for one in running if not self._is_over(study, one)]
        finally:
            for one in running:
                one.training.stop()

    def _num_trials(self, asked: Optional[int]) -> int:
        """Returns the number of trials in the end; raises if nothing says it."""
        sizes = [asked or self.sweep.run_cap]
        if self.sweep.method == "grid":
            grids = [parameter.grid() or () for parameter in self.sweep.parameters.values()]
            sizes.append(math.prod(map(len, grids)))
        known = [size for size in sizes if size is not None]
        if not known:
            raise ConfigurationError(
                "expected a number of trials: give --trials, or `run_cap` in the sweep file"
            )
        return min(known)

    def _folder_of(self, trial: "optuna.Trial") -> Path:
        return self.folder / f"trial-{trial.number}"

    def _go_on(self, trial: "optuna.Trial", num_jobs: int) -> Running:
        """Goes on with an interrupted trial, whose training may have ended since."""
        left = EndedTraining(self._folder_of(trial))
        if "pid" in trial.user_attrs:
            stop_left_over(trial.user_attrs["pid"], left.folder)
        if left.has_result():
            left.pack(self._config.get("include_in_archive"))
            return Running(trial, left)
        checkpointer = (self._config.get("trainer") or {}).get("checkpointer")
        if isinstance(checkpointer, dict):
            checkpointer = checkpointer.get("type")
        is_whole = checkpointer == "elmo_scratch_whole"
        if is_whole and any(left.folder.glob("model_state_*.th")):
            return Running(trial, self._start(trial, num_jobs, "--recover"))
        shutil.rmtree(left.folder, ignore_errors=True)
        return Running(trial, self._start(trial, num_jobs))

    def _start(self, trial: "optuna.Trial", num_jobs: int, *more: str) -> TrialTraining:
        """Starts the training of a trial. An interrupted trial draws the values that it had."""
        values = {name: one.draw(name, trial) for name, one in self.sweep.parameters.items()}
        trial.set_user_attr("values", values)
        logger.info("trial %d: %s", trial.number, values)
        training = TrialTraining(
            self._folder_of(trial),
            self._path,
            {**self.overrides, **values},
            [*self._arguments, *more],
            num_threads=max(1, num_processors() // num_jobs) if num_jobs > 1 else None,
        )
        try:
            trial.set_user_attr("pid", training.pid)
        except BaseException:
            # The study doesn't know this process, so nobody else could stop it.
            training.stop()
            raise
        return training

    def _is_over(self, study: "optuna.Study", one: Running) -> bool:
        """Tells the study how a training is getting on; returns whether it is over."""
        import optuna

        trial, training = one
        has_ended, is_behind = training.has_ended(), False
        try:
            if self.sweep.halving or self.sweep.metric.is_of_every_epoch:
                for epoch, value in training.new_epochs(self.sweep.metric):
                    # An interrupted training may have got further the first time.
                    if epoch not in study.trials[trial.number].intermediate_values:
                        trial.report(value, epoch)
                        is_behind = trial.should_prune() or is_behind
            if not has_ended and not is_behind:
                return False
            if not has_ended:
                training.stop()
                logger.info("trial %d is behind, and stopped", trial.number)
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                return True
            value = math.nan if training.has_failed() else training.result(self.sweep.metric)
        except ConfigurationError as error:
            self._fail(study, trial, error.message)
            raise
        if training.has_failed():
            self._fail(study, trial, training.last_lines())
        elif math.isnan(value):
            self._fail(study, trial, f"{self.sweep.metric.name} is not a number")
        else:
            study.tell(trial, value)
            logger.info("trial %d: %s %s", trial.number, self.sweep.metric.name, value)
        return True

    def _fail(self, study: "optuna.Study", trial: "optuna.Trial", reason: str) -> None:
        import optuna

        trial.set_user_attr("reason", reason)
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        logger.warning("trial %d failed:\n%s", trial.number, reason)


def _interrupted(study: "optuna.Study") -> List["optuna.Trial"]:
    """Returns the trials that were running when the search was stopped, the first one last."""
    import optuna

    stopped = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING])
    return [optuna.Trial(study, trial._trial_id) for trial in reversed(stopped)]


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Raises if another search runs in the folder: each would take running trials for its own."""
    try:
        with FileLock(folder / "lock", timeout=0):
            yield
    except Timeout:
        raise ConfigurationError(f"{folder}: another search works there") from None
