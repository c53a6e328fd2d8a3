"""
What all subcommands of the package have in common. Errors and interruptions are one line on stderr
and an exit status; messages meanwhile are plain lines.

`allennlp train`, `evaluate` and `predict`, as `elmo_scratch_compat.commands` has them, keep to the
same. Runs with what this package registers are quiet and close with what they have reached.
"""

import argparse
import errno
import json
import logging
import os
import re
import shlex
import shutil
import signal
import sys
import tarfile
import threading
import traceback
from abc import ABC, abstractmethod
from argparse import Namespace
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

import torch
from allennlp.commands.subcommand import Subcommand
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import parse_overrides, with_overrides
from allennlp.common.util import SigTermReceived
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

from elmo_scratch.command_line import CommandLine
from elmo_scratch.files.paths import is_address, resolve_path
from elmo_scratch.files.signals import Terminated
from elmo_scratch.interop.archives.weights import LANGUAGE_MODEL
from elmo_scratch.terminal import (
    closing_lines,
    course_of_training,
    last_checkpoint,
    result_lines,
    validation_metric,
    way_on,
)
from elmo_scratch_compat.archives import UNPACKABLE
from elmo_scratch_compat.bounds import CONFIG_SIZE
from elmo_scratch_compat.plain_members import PlainMember
from elmo_scratch_compat.terminal import is_of_package, quiet_terminal
from elmo_scratch_compat.training import FOLDER_CAME_BACK, LOCK, is_locked


class PackageSubcommand(Subcommand, ABC):
    """A subcommand, by its command line and what it does."""

    command_line: CommandLine

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = self.command_line.add_to(parser)
        subparser.set_defaults(func=self.run)
        return subparser

    @abstractmethod
    def run(self, args: Namespace) -> None:
        """Runs with these arguments; raises as `command_errors` says."""


class CommandError(ConfigurationError, SystemExit):
    """
    Ends a command with one line on stderr and exit status 1; Python code that runs the command can
    catch it as a `ConfigurationError`.
    """

    def __init__(self, command: str, message: object) -> None:
        super().__init__(f"allennlp {command}: error: {message}")
        self.code = self.message


def check_arguments(command: CommandLine, args: Namespace) -> None:
    """Raises `ConfigurationError` if arguments don't go together."""
    mistake = command.mistake_in(args)
    if mistake:
        raise ConfigurationError(mistake)


@contextmanager
def command_errors(
    command: str,
    output: str,
    way_on: str = "",
    is_kept: Callable[[], bool] = lambda: True,
    *,
    is_verbose: bool = False,
) -> Iterator[None]:
    """
    Turns errors in the block that the command line, a file or the disk causes into a
    `CommandError`, and an interruption into one line. The terminal gets the messages of the
    package, without time and logger, and warnings of others.

    # Parameters

    command : `str`
        The name of the command.
    output : `str`
        The file or folder that it writes, which the message of an `OSError` names.
    way_on : `str`, optional (default = `""`)
        How to go on after an interruption or an `OSError`, if finished work is kept.
    is_kept : `Callable[[], bool]`, optional (default = always)
        Whether there is finished work to go on with.
    is_verbose : `bool`, optional (default = `False`)
        Whether the terminal gets all messages as they are logged, and the traceback of an error.

    # Raises

    CommandError
        For a `ConfigurationError` or an `OSError` in the block.
    SystemExit
        If the command is interrupted, with status 130, or ended by another signal, with 128 plus
        its number.
    """
    numbers: List[int] = []
    try:
        told = nullcontext() if is_verbose else quiet_terminal(is_of_package)
        with _terminated_by_signal(numbers), told, _tracebacks(is_verbose):
            yield
    except ConfigurationError as error:
        raise CommandError(command, error.message) from None
    except OSError as error:
        kept = f". What is done is kept: {way_on}" if way_on and is_kept() else ""
        if error.errno == errno.ENOENT and not _has_working_folder():
            gone = "the working folder has been removed; change to one that is there"
            raise CommandError(command, gone) from None
        raise CommandError(command, f"{output}: {error}{kept}") from None
    except KeyboardInterrupt as error:
        then = ""
        if way_on:
            then = f"; {way_on}" if is_kept() else " before there was anything to keep"
        print(f"allennlp {command}: interrupted{then}", file=sys.stderr)
        if isinstance(error, Terminated):
            numbers.append(error.number)
        # While Ray waits, it replaces `Terminated` by an interruption of its own.
        number = numbers[0] if numbers else signal.SIGINT
        raise SystemExit(128 + number) from None


def _has_working_folder() -> bool:
    """Whether the folder is still there in which the command was typed."""
    try:
        os.getcwd()
        return True
    except FileNotFoundError:
        return False


@contextmanager
def _tracebacks(are_shown: bool) -> Iterator[None]:
    """Prints the traceback of an error, if it is to be shown, before it becomes one line."""
    try:
        yield
    except Exception:
        if are_shown:
            traceback.print_exc()
        raise


@contextmanager
def _terminated_by_signal(numbers: List[int]) -> Iterator[None]:
    """Records SIGTERM in `numbers` and raises `Terminated` for it, unless SIGTERM is ignored."""
    before = signal.getsignal(signal.SIGTERM)
    if before == signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, _: Any) -> None:
        numbers.append(number)
        raise Terminated(number)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


OURS = re.compile(r'"(elmo_scratch|(ag_news|spacy_blank|ud_pos)")')
"""Matches the names that this package registers with AllenNLP, as a config in JSON has them."""

TRAININGS = ("train", "elmo-train")
"""The commands that train by a config."""

NOT_BEGUN = re.compile(r"config\.json|meta\.json|out(_worker\d+)?\.log|training\.lock|vocabulary")
"""Matches the names of all that a training has in its folder before it begins."""


def run_plainly(command: str, run: Callable[[Namespace], Any], args: Namespace) -> Any:
    """
    Runs a command of AllenNLP.

    # Parameters

    command : `str`
        `"train"`, `"evaluate"`, `"predict"`, or `"elmo-train"`, which trains and writes a report.
    run : `Callable[[Namespace], Any]`
        What AllenNLP runs for it.
    args : `Namespace`
        Its arguments, with `verbose` and `debug`.

    # Raises

    CommandError
        For a mistake in the command line, the config or a file, unless `debug` is set.
    SystemExit
        With status 130 if the command is interrupted, 143 if it is terminated.
    """
    own = _FreeFolder.of(args.serialization_dir) if command in TRAININGS else None
    try:
        config = _config(command, args)
        is_quiet = OURS.search(json.dumps(config)) is not None and not args.verbose
        with ExitStack() as stack:
            if is_quiet:
                stack.enter_context(quiet_terminal())
            result = run(args)
        if is_quiet:
            for line in _closing(command, args, config, result):
                print(line)
        return result
    except (KeyboardInterrupt, SigTermReceived) as stop:
        way_on = _way_on(command, args)
        if getattr(stop, FOLDER_CAME_BACK, False):
            way_on = f" before it replaced {args.serialization_dir}, which is as it was"
        print(f"allennlp {command}: interrupted{way_on}", file=sys.stderr)
        raise SystemExit(130 if isinstance(stop, KeyboardInterrupt) else 143) from None
    except Exception as error:
        mistake = None if args.debug else mistake_of(error, args)
        if mistake is None:
            raise
        # The same line, once it is mended, needs no `--force`.
        if own is None or not own.give_back(error):
            _log_to_files(error)
        raise CommandError(command, mistake) from None


class _FreeFolder(NamedTuple):
    """A folder that a training may take: it is empty, or there is none yet."""

    path: Path
    is_there: bool

    @classmethod
    def of(cls, name: str) -> Optional["_FreeFolder"]:
        """`None` if there is anything at this place."""
        path = Path(name)
        if not os.path.lexists(path):
            return cls(path, False)
        return cls(path, True) if path.is_dir() and not any(path.iterdir()) else None

    def give_back(self, error: Exception) -> bool:
        """
        Brings the folder back to how it was, if `error` has refused a training before its first
        epoch and nothing but that training's settings and logs are there. Another process may have
        taken the folder meanwhile: then it isn't touched. Returns whether it was given back.
        """
        told = "".join(traceback.format_exception(error))
        if "_train_epoch" in told or "create_serialization_dir" in told:
            return False
        if is_locked(str(self.path / LOCK)) or not self.path.is_dir():
            return False
        files = list(self.path.iterdir())
        if not all(NOT_BEGUN.fullmatch(one.name) for one in files):
            return False
        for one in files:
            if one.is_dir() and not one.is_symlink():
                shutil.rmtree(one, ignore_errors=True)
            else:
                one.unlink(missing_ok=True)
        if not self.is_there:
            # On a network file system a file that is still open keeps a name there.
            with suppress(OSError):
                self.path.rmdir()
        return True


def _config(command: str, args: Namespace) -> Dict[str, Any]:
    """
    The config that a command goes by, with what was typed as overrides; of an archive only if that
    begins with it, as AllenNLP packs them. Whatever is wrong with an archive is told by what loads
    it.
    """
    if command in TRAININGS:
        return Params.from_file(args.param_path, args.overrides).as_dict(quiet=True)
    name = args.archive_file
    try:
        config = json.loads(_packed_config(resolve_path(name) if is_address(name) else Path(name)))
        return with_overrides(config, parse_overrides(args.overrides))
    except UNPACKABLE:
        return {}


def _packed_config(archive: Path) -> bytes:
    if archive.is_dir():
        return (archive / "config.json").read_bytes()
    with tarfile.open(archive, "r:gz", tarinfo=PlainMember) as members:
        first = members.next()
        if first is None or first.name != "config.json" or first.size > CONFIG_SIZE:
            return b"{}"
        file = members.extractfile(first)
        return b"{}" if file is None else file.read(CONFIG_SIZE)


def _closing(command: str, args: Namespace, config: Dict[str, Any], result: Any) -> List[str]:
    """Returns the lines that tell what was reached, where it lies, and what to type next."""
    if command in TRAININGS and not args.dry_run:
        folder = Path(args.serialization_dir)
        course = course_of_training(folder)
        told = f"On the {course.data} data, after epoch {course.best_epoch + 1}, the best:"
        results = result_lines(course.best, course.epochs, validation_metric(config)[1:])
        archive = folder / "model.tar.gz"
        # What is trained by several processes each logs for itself.
        log = "out_worker0.log" if config.get("distributed") else "out.log"
        places: Dict[str, object] = {
            "model": archive,
            "all metrics": folder / "metrics.json",
            "whole log": folder / log,
        }
        if command == "elmo-train":
            places = {"report": folder / "report.html", **places}
        steps = [f"allennlp evaluate {shlex.quote(str(archive))} TEXTS"]
    elif command == "evaluate":
        told = f"On {args.input_file}:"
        results = result_lines(result, chosen=validation_metric(config)[1:])
        archive = Path(args.archive_file)
        places = {"all metrics": args.output_file} if args.output_file else {}
        steps = []
    else:
        return []
    steps.append(_use(command, archive, config))
    steps = [" ".join([step, *map(shlex.quote, _packages(args))]) for step in steps]
    return closing_lines([told, *(f"  {line}" for line in results)], places, steps)


def _use(command: str, archive: Path, config: Dict[str, Any]) -> str:
    """The command that uses a model that `command` has trained or evaluated."""
    name = shlex.quote(str(archive))
    if str(config["model"].get("type", "")).startswith(LANGUAGE_MODEL):
        line = f"allennlp elmo TEXT layers.hdf5 --all --weight-file {name}"
        language = _language(config.get("dataset_reader"))
        return line if language is None else f"{line} --tokenize {shlex.quote(language)}"
    return f"allennlp predict {name} TEXTS.jsonl"


def _language(reader: Any) -> Optional[str]:
    """The language by whose rules alone the reader in a config cuts texts into words."""
    tokenizer = reader.get("tokenizer") if isinstance(reader, dict) else None
    if isinstance(tokenizer, str):
        tokenizer = {"type": tokenizer}
    if not isinstance(tokenizer, dict) or tokenizer.get("type") != "spacy_blank":
        return None
    language = tokenizer.get("language", "en")
    return language if tokenizer.keys() <= {"type", "language"} else None


def _packages(args: Namespace) -> List[str]:
    """The options that name the packages of a user's own, for another command."""
    return [word for name in args.include_package for word in ("--include-package", name)]


def _way_on(command: str, args: Namespace) -> str:
    """How to go on after an interruption, as the end of a line."""
    if command not in TRAININGS:
        return ""
    folder = Path(args.serialization_dir)
    if command == "elmo-train":
        kept = last_checkpoint(folder)
        where = f" from the last checkpoint, after {kept}" if kept else " from the beginning"
        return f". The same command goes on{where}"
    options = ["-o", args.overrides] if args.overrides else []
    if args.node_rank:
        options += ["--node-rank", str(args.node_rank)]
    options += _packages(args)
    command = way_on(folder, args.param_path, options)
    kept = last_checkpoint(folder)
    if kept:
        return f" after {kept}, which is kept. Go on with:\n  {command}"
    return f" before the first checkpoint: nothing is kept. Begin anew with:\n  {command}"


def _log_to_files(error: Exception) -> None:
    """Writes an error to the log files of a training as AllenNLP does, so that they stay whole."""
    cause = (type(error), error, error.__traceback__)
    record = logging.LogRecord(
        "root", logging.CRITICAL, __file__, 0, "Uncaught exception", None, cause
    )
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.FileHandler):
            handler.handle(record)


MORE = "; --debug shows where"


def mistake_of(error: Exception, args: Namespace) -> Optional[str]:
    """
    Returns the line for an error in `allennlp train`, `evaluate` or `predict`, given the command's
    arguments; `None` if it is the mistake of a program, whose traceback is wanted.
    """
    message = " ".join(str(error).split())
    config: str = args.param_path if "param_path" in args else args.archive_file
    if isinstance(error, ConfigurationError):
        told = " ".join(str(error.message).split())
        if re.match(r"Serialization directory \(.+\) already exists and is not empty", told):
            return _of_folder_in_use(args)
        return _of_gpu(told, config) or _of_unknown_name(told)
    if isinstance(error, OSError):
        missing = re.fullmatch(r"file (.+) not found", message)
        if missing:
            return f"{missing[1]}: there is no such file"
        return f"{error.filename}: {error.strerror}" if error.filename else message
    if isinstance(error, NotImplementedError):
        return (
            f"{config}: expected a model that answers JSON lines. Name a --predictor that suits "
            "it, or predict by --use-dataset-reader; `allennlp elmo` writes the vectors of a biLM."
        )
    if isinstance(error, TypeError) and re.fullmatch(r"Expected \w+ to be an? .+", message):
        return f"{config}: {message[0].lower()}{message[1:]}"
    if isinstance(error, (RuntimeError, ValueError)):
        if message.startswith("overrides"):
            return message
        mistake = _of_jsonnet(message, config, args) or _of_gpu(message, config)
        return mistake or f"{message.rstrip('.')}{MORE}"
    return _of_process(error, args)


LOST = re.compile(r"connection (reset|closed)|broken pipe|timed out|exited|aborted", re.IGNORECASE)
"""Matches PyTorch's messages on a process of a training that another one doesn't reach any more."""


def _of_process(error: Exception, args: Namespace) -> Optional[str]:
    """The line where one of several processes has ended a training."""
    if isinstance(error, ProcessExitedException):
        how = f"ended with status {error.exit_code}"
        if error.signal_name:
            how = f"was killed by {error.signal_name}"
        return f"process {error.error_index} of the training {how}{_way_on('train', args)}"
    if not isinstance(error, ProcessRaisedException):
        return None
    # What it has raised comes last in the text of its traceback, whose other lines are indented.
    last = str(error).rpartition("Traceback (most recent call last):\n")[2]
    raised = re.search(r"^([\w.]+): (.*)", last, re.MULTILINE | re.DOTALL)
    if raised is None:
        return None
    kind, told = raised[1].rpartition(".")[2], " ".join(raised[2].split())
    if kind == "ConfigurationError":
        return _of_unknown_name(told)
    is_of_pytorch = kind.startswith("Dist") or kind == "RuntimeError"
    if is_of_pytorch and LOST.search(told):
        lost = "another process of the training, perhaps on another machine, was lost"
        return f"{lost}{_way_on('train', args)}"
    return f"{told.rstrip('.')}{MORE}" if is_of_pytorch or kind == "ValueError" else None


def _of_unknown_name(message: str) -> str:
    """
    AllenNLP lists all names that it knows in place of one that it doesn't know, and advises a path,
    which an archive may not name.
    """
    choices = r"((?:.+: )?)(\S+) not in acceptable choices for (\S+): \[(.*?)\]\. "
    listed = re.match(choices, message)
    if listed is None:
        return message
    file, name, place, names = listed.groups()
    known = re.findall(r"'([^']+)'", names)
    nearest = get_close_matches(name, known, n=1)
    told = f"Did you mean {nearest[0]!r}?" if nearest else f"Expected one of {', '.join(known)}."
    return (
        f"{file}{place}: there is no {name!r}. {told} A class of your own needs "
        "--include-package PACKAGE"
    )


def _of_jsonnet(message: str, config: str, args: Namespace) -> Optional[str]:
    """The line for an error in a config that is no valid program, or in overrides."""
    variable = re.search(r"undefined external variable: (\w+)", message)
    if variable is not None:
        return (
            f"{config}: the environment variable {variable[1]} is not set, which the config asks "
            f"for; its head says what for: export {variable[1]}=..."
        )
    place = re.match(r"(?:STATIC|RUNTIME) ERROR: (.*)", message)
    if place is not None:
        # Overrides are no file: their place begins with the number of a line.
        if re.match(r"\d+:\d+", place[1]):
            return f"--overrides: expected JSON, but got {args.overrides} ({place[1]})"
        return f"{config}: expected a config in Jsonnet, but {place[1]}"
    return None


def _of_gpu(message: str, config: str) -> Optional[str]:
    """The line where a config, often an old one, names a GPU that isn't there."""
    asks_for_one = re.match(
        r"Cannot access accelerator|Experiment specified|Torch not com", message
    )
    if asks_for_one is None or torch.cuda.is_available():
        return None
    return (
        f"{config}: it names a GPU, but PyTorch sees none. Leave `trainer.cuda_device` out, or set "
        "it to -1 (-o '{\"trainer.cuda_device\": -1}')"
    )


def _of_folder_in_use(args: Namespace) -> str:
    """The line where something lies in the folder of a training, and how to go on there."""
    folder = Path(args.serialization_dir)
    kept = last_checkpoint(folder)
    if (folder / "model.tar.gz").exists():
        there = "a finished training lies there. Replace it by --force"
    elif kept:
        there = f"a training was stopped there after {kept}. Go on with it by --recover"
    else:
        there = "it is not empty, but holds no checkpoint. Begin anew by --force"
    return f"{folder}: {there}, or choose another folder by -s"
