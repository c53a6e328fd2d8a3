"""The beginning of the program `allennlp`, before AllenNLP is imported, which takes seconds."""

import multiprocessing
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import List, Optional

PROGRAMS = ("allennlp", "allennlp.exe", "allennlp-script.py")
"""The names of files that the program is started by."""

SECONDS_BETWEEN_LINES = 2.0
"""How long nothing is said while modules are imported."""


class _Loading:
    """Says in a terminal what is being imported; it hears of each module that Python looks for."""

    def __init__(self) -> None:
        self._next_line = float("inf")

    def begin(self) -> None:
        self._say("")

    def go_on(self, module: str) -> None:
        if time.monotonic() >= self._next_line:
            self._say(f": {module.partition('.')[0]}")

    def end(self) -> None:
        self._next_line = float("inf")

    def _say(self, what: str) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            print(f"loading AllenNLP{what} …", file=sys.stderr)
            self._next_line = time.monotonic() + SECONDS_BETWEEN_LINES


LOADING = _Loading()
"""What this process tells of its imports."""


def begin_command() -> None:
    """
    The first thing that AllenNLP does is to import PyTorch; then it imports all of its own modules,
    and all of their requirements, before it reads a word of what was typed. So the help of a
    subcommand came after eight seconds, and so did the word that an argument was missing.

    If this program is `allennlp` with a subcommand of the package, what was typed is read here: the
    program ends if it asks for help or has a mistake. Otherwise lines in the terminal say what is
    being waited for, one every two seconds.
    """
    words = typed_words()
    if words is None:
        return
    # The plugin's half: it knows its subcommands.
    import_module("elmo_scratch.command_line").check_words(words)
    LOADING.begin()


def typed_words() -> Optional[List[str]]:
    """Returns what was typed after `allennlp`; `None` in other programs and in its workers."""
    # Workers have the command line of the process that started them.
    if not getattr(sys, "argv", None) or multiprocessing.parent_process() is not None:
        return None
    program, *words = sys.argv
    if Path(program).name in PROGRAMS:
        return words
    # While Python looks for the module that it shall run, it calls the program "-m".
    if program == "-m" and sys.orig_argv[-len(sys.argv)] == "allennlp":
        return words
    return None
