"""The beginning of the program `allennlp`, before AllenNLP is imported, which takes seconds."""

import multiprocessing
import sys
from importlib import import_module
from pathlib import Path
from typing import List, Optional

PROGRAMS = ("allennlp", "allennlp.exe", "allennlp-script.py")
"""The names of files that the program is started by."""


def begin_command() -> None:
    """
    The first thing that AllenNLP does is to import PyTorch; then it imports all of its own modules,
    and all of their requirements, before it reads a word of what was typed. So the help of a
    subcommand came after eight seconds, and so did the word that an argument was missing.

    If this program is `allennlp` with a subcommand of the package, what was typed is read here: the
    program ends if it asks for help or has a mistake. Otherwise a line in the terminal says what is
    being waited for.
    """
    words = typed_words()
    if words is None:
        return
    # The plugin's half: it knows its subcommands.
    import_module("elmo_scratch.command_line").check_words(words)
    if sys.stderr is not None and sys.stderr.isatty():
        print("loading AllenNLP …", file=sys.stderr)


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
