"""A search: trains a config with many values, one training after the other or several at a time."""

import logging
import math
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import parse_overrides, with_overrides
from filelock import FileLock, Timeout

from elmo_scratch.files.machine import num_processors
from elmo_scratch.search.processes import stop_left_over
from elmo_scratch.search.study import next_trial, num_tried, open_study, study_errors
from elmo_scratch.search.sweep import Sweep
from elmo_scratch.search.trial import EndedTraining, TrialFolder, TrialTraining

if TYPE_CHECKING:
    import optuna

logger = logging.getLogger(__name__)

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
