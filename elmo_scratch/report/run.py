"""Reads the output folder of a training, in whatever state it is."""

import os
import re
import socket
from enum import Enum
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from allennlp.common.checks import ConfigurationError
from allennlp.common.meta import META_NAME
from allennlp.models.archival import CONFIG_NAME

from elmo_scratch.files.strict_json import printable, read_json_object
from elmo_scratch.report.metrics import Metrics, read_metrics, total_seconds
from elmo_scratch.terminal import validation_metric
from elmo_scratch.training.checkpointer import LOCK, MAX_NAME, training_process
from elmo_scratch.training.environment import ENVIRONMENT
from elmo_scratch.training.exact_resume import METRICS

FINAL, VOCABULARY = "metrics.json", "vocabulary"
"""AllenNLP's names of files in the output folder of a training."""

LOGS = ("out.log", "out_worker0.log")
"""The log of a training by one process, and that of the first of several."""

RECORD = re.compile(rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - [A-Z]+ - ", re.MULTILINE)
"""The beginning of a record in AllenNLP's log."""

UNCAUGHT = b" - CRITICAL - root - Uncaught exception\n"
"""The end of the first line of what AllenNLP logs last where an error ends a training."""

TAIL = 2**18
"""Bytes at the end of a log that are searched for an error."""

MAX_PROBLEMS = 8
"""The report tells so many problems of a run one by one."""

MAX_WORDS = 10**8
"""Lines of a file of a vocabulary that are counted."""

RUN = "run"
"""What studies call the output folder of each training, which tells nothing."""

SEARCH_DEPTH = 4
"""How many folders deep trainings are looked for: as deep as studies and searches keep them."""

SEED = re.compile(r"(?:.*_)?seed")
"""Matches the settings that make two trainings repetitions of one experiment."""


class State(Enum):
    """How far a training is; the value is a sentence's end for readers."""

    FINISHED = "finished"
    RUNNING = "in progress"
    FAILED = "ended by an error"
    STOPPED = "stopped before its end"
    UNFINISHED = "not finished"


class Measure(NamedTuple):
    """The metric that a training chose its best epoch by."""

    name: str
    higher_is_better: bool


class Run(NamedTuple):
    """
    A training.

    # Parameters

    folder : `Path`
        Where it is.
    state : `State`
        How far it is.
    reason : `str`
        The error that ended it, or the process that trains; empty if there is nothing to say.
    config : `Dict[str, Any]`
        As AllenNLP has written it.
    epochs : `Dict[int, Metrics]`
        The metrics after each epoch, by its number from 0 on, in order.
    final : `Metrics`
        Those at the end or, before it, of the last epoch.
    environment : `Dict[str, Any]`
        What `elmo_scratch.training.environment` has written, if it has.
    allennlp_version : `str`
        Empty where it is not known.
    vocabulary : `Dict[str, int]`
        The number of entries of each namespace.
    problems : `Tuple[str, ...]`
        What couldn't be read, a line each.
    """

    folder: Path
    state: State
    reason: str
    config: Dict[str, Any]
    epochs: Dict[int, Metrics]
    final: Metrics
    environment: Dict[str, Any]
    allennlp_version: str
    vocabulary: Dict[str, int]
    problems: Tuple[str, ...]

    @property
    def settings(self) -> Dict[str, Any]:
        """The config's values by their dotted names; lists are values."""
        return flattened(self.config)

    @property
    def seeds(self) -> Dict[str, Any]:
        """The settings that are seeds."""
        return {name: value for name, value in self.settings.items() if is_seed(name)}

    @property
    def measure(self) -> Measure:
        """AllenNLP's `validation_metric`; of several the first."""
        name = validation_metric(self.config)
        return Measure(printable(name[1:]), name[0] == "+")

    @property
    def score(self) -> Optional[float]:
        """The best value of `measure` on the validation data; `None` if there is none."""
        return self.final.of("best_validation").get(self.measure.name)

    @property
    def num_epochs(self) -> Optional[int]:
        """How many epochs were planned; `None` if the config doesn't say."""
        number = self.settings.get("trainer.num_epochs")
        return number if type(number) is int and number > 0 else None

    @property
    def best_epoch(self) -> Optional[int]:
        """The number of the best epoch, from 0 on."""
        number = self.final.numbers.get("best_epoch")
        return int(number) if number is not None and number in self.epochs else None

    @property
    def seconds(self) -> float:
        """How long it has trained, validation included; 0 if it is not known."""
        spans = [metrics.seconds for metrics in self.epochs.values()]
        return total_seconds([seconds for seconds in spans if seconds is not None])

    @property
    def model_type(self) -> str:
        """The registered name of its model."""
        return printable(str(self.settings.get("model.type", "unknown")))

    def curve(self, name: str) -> List[Tuple[int, float]]:
        """The epochs, counted from 1 on, in which a number was measured, and the number."""
        return [
            (epoch + 1, metrics.numbers[name])
            for epoch, metrics in self.epochs.items()
            if name in metrics.numbers
        ]


def is_seed(name: str) -> bool:
    """Whether a setting, given by its dotted name, is a seed."""
    return SEED.fullmatch(name.rpartition(".")[2]) is not None


def flattened(config: Dict[str, Any], beginning: str = "") -> Dict[str, Any]:
    """The values of nested objects by their dotted names. An empty object is a value too."""
    flat: Dict[str, Any] = {}
    for key, value in config.items():
        name = f"{beginning}{printable(key)}"
        if isinstance(value, dict) and value:
            flat.update(flattened(value, f"{name}."))
        else:
            flat[name] = value
    return flat


def find_runs(path: Path) -> List[Path]:
    """
    The output folders of trainings: the folder itself if it is one, or else all those in it, as a
    study or a search has them. Raises `ConfigurationError` if there is none.
    """
    if not path.is_dir():
        found = "it is none" if path.exists() else "there is none"
        raise ConfigurationError(f"{path}: expected the output folder of a training, but {found}")
    if (path / CONFIG_NAME).is_file():
        return [path]
    runs = sorted(_runs_below(path, SEARCH_DEPTH))
    if not runs:
        raise ConfigurationError(
            f"{path}: expected the output folder of a training, or a folder of such folders, but "
            f"there is no {CONFIG_NAME}. Give what `allennlp train` got as -s."
        )
    return runs


def _runs_below(folder: Path, depth: int) -> Iterator[Path]:
    """Links are not followed: they may lead in circles."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            path = Path(entry.path)
            if (path / CONFIG_NAME).is_file() and (path / META_NAME).is_file():
                yield path
            elif depth > 1:
                yield from _runs_below(path, depth - 1)


def read_run(folder: Path) -> Run:
    """
    Reads the output folder of a training, whatever it has come to. What can't be read of its
    metrics is left out, with a line in `problems`. Raises `ConfigurationError` if it has no config
    that can be read.
    """
    config = read_json_object(folder / CONFIG_NAME)
    problems: List[str] = []
    epochs = {}
    for number, path in sorted(_metrics_files(folder)):
        metrics = _read_or_none(path, problems)
        if metrics is not None:
            epochs[number] = metrics
    is_over = (folder / FINAL).is_file()
    final = _read_or_none(folder / FINAL, problems) if is_over else None
    if final is None:
        final = epochs[max(epochs)] if epochs else Metrics({}, {})
    state, reason = _state(folder, is_over)
    if len(problems) > MAX_PROBLEMS:
        rest = len(problems) - MAX_PROBLEMS
        problems = [*problems[:MAX_PROBLEMS], f"… and {rest} more values that can't be read"]
    return Run(
        folder,
        state,
        reason,
        config,
        epochs,
        final,
        _read_if_there(folder / ENVIRONMENT),
        printable(str(_read_if_there(folder / META_NAME).get("version", ""))),
        _vocabulary(folder / VOCABULARY),
        tuple(problems),
    )


def _metrics_files(folder: Path) -> Iterator[Tuple[int, Path]]:
    for path in folder.glob("metrics_epoch_*.json"):
        found = METRICS.fullmatch(path.name)
        if found:
            yield int(found[1]), path


def _read_or_none(path: Path, problems: List[str]) -> Optional[Metrics]:
    try:
        return read_metrics(path, problems)
    except ConfigurationError as error:
        problems.append(str(error.message))
        return None


def _read_if_there(path: Path) -> Dict[str, Any]:
    """Reads what a run can do without: what isn't there, or can't be read, is empty."""
    try:
        return read_json_object(path)
    except ConfigurationError:
        return {}


def _state(folder: Path, is_over: bool) -> Tuple[State, str]:
    process = training_process(folder)
    if process is not None:
        return State.RUNNING, printable(process)
    if is_over:
        return State.FINISHED, ""
    for name in LOGS:
        error = _uncaught_error(folder / name)
        if error is not None:
            return State.FAILED, error
    if _trained_here(folder / LOCK):
        return State.STOPPED, ""
    return State.UNFINISHED, "nothing tells whether a process still trains"


def _trained_here(lock: Path) -> bool:
    """
    Whether a process of this machine had the lock: only then it is known that none holds it now.
    """
    try:
        if not lock.is_file():
            return False
        with open(lock, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_NAME).strip().endswith(f" on {socket.gethostname()}")
    except OSError:
        return False


def _uncaught_error(log: Path) -> Optional[str]:
    """The last line of an error with which the log ends; `None` if it ends otherwise."""
    try:
        if not log.is_file():
            return None
        with open(log, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - TAIL, 0))
            tail = file.read(TAIL)
    except OSError:
        return None
    records = [found.start() for found in RECORD.finditer(tail)]
    last = tail[records[-1] :] if records else b""
    head, newline, _ = last.partition(b"\n")
    if not (head + newline).endswith(UNCAUGHT):
        return None
    lines = last.decode("utf-8", errors="replace").splitlines()[1:]
    begins = [place for place, line in enumerate(lines) if line.startswith("Traceback")]
    # Lines of the traceback are indented; of a message of several lines the first says most.
    after = lines[begins[-1] + 1 :] if begins else lines
    errors = (line.strip() for line in after if line.strip() and not line.startswith(" "))
    return printable(next(errors, "an error without a message"))


def _vocabulary(folder: Path) -> Dict[str, int]:
    """The number of lines of each namespace's file."""
    sizes: Dict[str, int] = {}
    try:
        for path in sorted(folder.glob("*.txt")):
            if path.is_file() and path.name != "non_padded_namespaces.txt":
                with open(path, "rb") as file:
                    sizes[printable(path.stem)] = sum(1 for _, _ in zip(file, range(MAX_WORDS)))
    except OSError:
        pass
    return sizes


def run_names(folders: Sequence[Path]) -> List[str]:
    """
    A short name for each training: the last parts of its path that tell it from the others, without
    those that all end in.
    """
    parts = [Path(os.path.abspath(folder)).parts for folder in folders]
    parts = [path[:-1] if path[-1] == RUN and len(path) > 2 else path for path in parts]
    if len(set(parts)) == 1:
        return [printable(path[-1]) for path in parts]
    while all(len(path) > 1 for path in parts) and len({path[-1] for path in parts}) == 1:
        parts = [path[:-1] for path in parts]
    for length in range(1, max(map(len, parts)) + 1):
        ends = ["/".join(path[-length:]) for path in parts]
        if len(set(ends)) == len(set(parts)):
            break
    return [printable(end) for end in ends]
