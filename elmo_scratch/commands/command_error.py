"""
What all subcommands of the package have in common. Errors and interruptions are one line on stderr
and an exit status; messages meanwhile are plain lines.
"""

import argparse
import errno
import os
import signal
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from argparse import Namespace
from contextlib import contextmanager, nullcontext
from typing import Any, Callable, Iterator, List

from allennlp.commands.subcommand import Subcommand
from allennlp.common.checks import ConfigurationError

from elmo_scratch.command_line import CommandLine
from elmo_scratch.files.signals import Terminated
from elmo_scratch_compat.terminal import is_of_package, quiet_terminal


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
