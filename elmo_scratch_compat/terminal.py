"""What AllenNLP's commands print while they run. Their log files get all of it."""

import functools
import logging
import os
import re
import shutil
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List, Optional

QUIET = "ELMO_SCRATCH_QUIET"
"""
The environment variable that is set while a quiet command runs: the processes of a distributed
training get nothing else from the command that has started them.
"""

WITHOUT_PROGRESS = "without progress"
"""Its value in the workers of such a training beside the first, whose progress is that of all."""

TOLD = {
    r"Recovering from prior training at (.+)\.": r"going on with the training in \1",
    r"Number of trainable parameters: (\d+)": r"weights to train: \1",
    r"Training interrupted by the user\. Attempting.*": "interrupted: packing the best epoch",
    r"Switching to distributed .* Primary is at: (\S+) .* Number of nodes: (?!1 ).*": (
        r"waiting for all machines at \1"
    ),
    r"archiving weights and vocabulary to .*": "packing the archive",
    r"loading archive file (\S+).*": r"loading \1",
    r"Reading evaluation data from (.+)": r"reading \1",
    r"The model will be evaluated using the best epoch weights\.": "evaluating on the test set",
}
"""AllenNLP's messages on what a command is about to do, and how a quiet command says it."""

FILE_WIDTH, SECONDS_BETWEEN_LINES = 79, 10.0
"""The most characters of a line of progress where stderr is a file, and how often it gets one."""

LEFT_OUT = re.compile(
    "You provided a validation dataset but patience was set to None"
    "|Parameter local_rank for class GradientDescentTrainer was found in both"
    r"|Worker \d+ completed its entire epoch"
)
"""Matches warnings that tell what is the default, or what each distributed training does."""

logger = logging.getLogger(__name__)


def is_quiet() -> bool:
    """Whether a command runs that prints only what a person reads."""
    return QUIET in os.environ


def tell(message: str) -> None:
    """Prints a line of a quiet command, and adds it to the log file. Other commands say nothing."""
    if is_quiet():
        logger.info("%s", message)


def is_of_terminal(handler: logging.Handler) -> bool:
    """Whether it prints, and doesn't write to a file."""
    return isinstance(handler, logging.StreamHandler) and handler.stream in (sys.stdout, sys.stderr)


def is_for_people(record: logging.LogRecord) -> bool:
    """Whether a quiet command prints a message: warnings, and what it is about to do."""
    if record.levelno >= logging.WARNING:
        return LEFT_OUT.match(record.getMessage()) is None
    if record.name == __name__:
        return True
    is_of_allennlp = record.name == "root" or record.name.startswith("allennlp.")
    return is_of_allennlp and _told(record.getMessage()) is not None


def is_of_package(record: logging.LogRecord) -> bool:
    """Whether one of the package's own commands prints a message: warnings, and its own."""
    return record.levelno >= logging.WARNING or record.name.startswith("elmo_scratch.")


def _told(message: str) -> Optional[str]:
    """How a quiet command says one of AllenNLP's messages; `None` for those that it leaves out."""
    for pattern, told in TOLD.items():
        match = re.fullmatch(pattern, message)
        if match is not None:
            return match.expand(told)
    return None


class _PlainFormatter(logging.Formatter):
    """Messages without time and logger, which stand in the log file."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        begin = PROGRESS.end_of_line()
        if record.levelno >= logging.WARNING:
            return f"{begin}{record.levelname.lower()}: {record.message}"
        return begin + (_told(record.message) or record.message)


@contextmanager
def quiet_terminal(
    is_told: Callable[[logging.LogRecord], bool] = is_for_people,
) -> Iterator[None]:
    """
    Makes the commands in the block print only the messages that `is_told` chooses, by default
    those `is_for_people`, and lines of progress that fit. Log files stay whole.
    """
    handlers = [handler for handler in logging.getLogger().handlers if is_of_terminal(handler)]
    formatters = [handler.formatter for handler in handlers]
    os.environ[QUIET] = "1"
    for handler in handlers:
        _make_quiet(handler, is_told)
    try:
        yield
    finally:
        os.environ.pop(QUIET, None)
        for handler, formatter in zip(handlers, formatters, strict=True):
            handler.removeFilter(is_told)
            handler.setFormatter(formatter)


def _make_quiet(handler: logging.Handler, is_told: Callable[[logging.LogRecord], bool]) -> None:
    handler.addFilter(is_told)
    handler.setFormatter(_PlainFormatter())


def print_less(common_logging: Any) -> None:
    """
    AllenNLP prints 1,900 lines for a training of five epochs: a line for each parameter of the
    config, the tensors of the first batch, all metrics as JSON. They stand in `out.log` too.
    """
    original = common_logging.prepare_global_logging

    @functools.wraps(original)
    def prepare_global_logging(serialization_dir: Any, rank: int = 0, world_size: int = 1) -> None:
        original(serialization_dir, rank, world_size)
        if is_quiet():
            if rank > 0:
                os.environ[QUIET] = WITHOUT_PROGRESS
            for handler in logging.getLogger().handlers:
                if is_of_terminal(handler):
                    _make_quiet(handler, is_for_people)

    common_logging.prepare_global_logging = prepare_global_logging


def fit_progress(tqdm: Any) -> None:
    """
    AllenNLP's line of progress names all metrics, in some hundred characters. A terminal breaks a
    line that is too long, and each update begins a new one. The log file gets all of it.
    """
    # All that AllenNLP's module has of `sys` is the stream that it writes to.
    tqdm.sys = SimpleNamespace(stderr=PROGRESS)


class _ProgressStream:
    """Writes progress to stderr; of a quiet command as a terminal, or a file, can show it."""

    def __init__(self) -> None:
        self._last_line = 0.0
        self._is_within_line = False

    def write(self, message: str) -> None:
        if not is_quiet():
            sys.stderr.write(message)
        elif os.environ[QUIET] == WITHOUT_PROGRESS:
            return
        elif sys.stderr.isatty():
            line = fitted(message, shutil.get_terminal_size().columns - 1)
            sys.stderr.write(line)
            self._is_within_line = not line.endswith("\n")
        elif self._is_due(message):
            line = message.replace("\r", "").strip()
            sys.stderr.write(f"{fitted(line, FILE_WIDTH)}\n")

    def flush(self) -> None:
        sys.stderr.flush()

    def end_of_line(self) -> str:
        """What a message begins with that would else stand behind the progress so far."""
        is_within_line, self._is_within_line = self._is_within_line, False
        return "\n" if is_within_line else ""

    def _is_due(self, message: str) -> bool:
        """A file gets a line of progress now and then, and the last one."""
        now = time.monotonic()
        if "%|" not in message or not (
            now - self._last_line >= SECONDS_BETWEEN_LINES or "100%|" in message
        ):
            return False
        self._last_line = now
        return True


PROGRESS = _ProgressStream()
"""The progress of this process."""


def fitted(message: str, width: int) -> str:
    """
    Returns a line of progress with as many of its metrics, the first ones, as a line of `width`
    characters can hold. A longer line before it is overwritten.
    """
    if len(message.strip("\r\n")) <= width:
        return message
    start = "\r" if message.startswith("\r") else ""
    metrics, _, bar = map(str.strip, message.rpartition(" ||: "))
    kept: List[str] = []
    for metric in metrics.split(", ") if metrics else ():
        if len(", ".join([*kept, metric])) + len(f"  {bar}") > width:
            break
        kept.append(metric)
    line = f"{', '.join(kept)}  {bar}".strip()[:width]
    end = "\n" if message.endswith("\n") else ""
    return start + (line.ljust(width) if start else line) + end


def epoch_line(metrics: Dict[str, Any], tracked: List[str], epoch: int, num_epochs: int) -> str:
    """
    What an epoch has reached: the loss and the metrics by which the best epoch is chosen, on the
    training data and on the validation data.
    """
    told = []
    for name in dict.fromkeys(["loss", *tracked]):
        numbers = [metrics.get(f"{data}_{name}") for data in ("training", "validation")]
        known = " / ".join("-" if number is None else f"{number:.4g}" for number in numbers)
        told.append(f"{name} {known}")
    # AllenNLP gives it with microseconds.
    duration = str(metrics.get("training_duration", "")).partition(".")[0]
    return f"epoch {epoch + 1} of {num_epochs}  {duration}  {', '.join(told)}"
