"""`docs/reference/commands.md`: the subcommands and their options, from their parsers."""

import argparse
from typing import Iterator

from benchmarks.reference.docstrings import escaped
from elmo_scratch.command_line import COMMANDS, CommandLine

HEAD = """\
# Commands

The package's own subcommands of `allennlp`, with all they take; `--help` says the same. As all
subcommands of AllenNLP's they also take `--include-package`, the name of a package with
[classes of your own](../using/allennlp.md#classes-of-your-own). [The terminal](../terminal.md)
shows what they print.

`python -m benchmarks.reference --write` makes this page from the parsers."""


def commands_page() -> str:
    """The page."""
    lines = [HEAD]
    for _, command in sorted(COMMANDS.items()):
        lines += ["", f"## allennlp {command.name}", "", escaped(command.description.strip()), ""]
        lines += _options(command)
    return "\n".join(lines) + "\n"


def _options(command: CommandLine) -> Iterator[str]:
    """Yields a line for each argument, those without a dash first, as they are typed."""
    parser = command.add_to(argparse.ArgumentParser(prog="allennlp").add_subparsers())
    actions = [one for one in parser._actions if not isinstance(one, argparse._HelpAction)]
    for action in sorted(actions, key=lambda one: bool(one.option_strings)):
        needed = ", needed" if action.required and action.option_strings else ""
        text = (action.help or "") % {**vars(action), "prog": parser.prog}
        yield f"- {_typed(action)}{needed}: {escaped(text)}"


def _typed(action: argparse.Action) -> str:
    """An argument as it is typed, by its short and its long name."""
    choices = "|".join(map(str, action.choices or []))
    metavar = action.metavar or choices or action.dest.upper()
    value = " ".join(metavar) if isinstance(metavar, tuple) else metavar
    if action.nargs == 0:
        value = ""
    elif action.nargs in ("+", "*"):
        value += " …"
    elif isinstance(action.nargs, int) and isinstance(metavar, str):
        value = " ".join([value] * action.nargs)
    names = action.option_strings or [""]
    return ", ".join(f"`{f'{name} {value}'.strip()}`" for name in names)
