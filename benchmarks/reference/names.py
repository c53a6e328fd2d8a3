"""`docs/reference/names.md`: every registered name, and the first sentence on its class."""

from benchmarks.reference.docstrings import first_sentence, parsed
from benchmarks.reference.registered import KINDS, Registered, registered
from benchmarks.reference.settings import anchor, text_of
from elmo_scratch.command_line import COMMANDS

HEAD = """\
# Registered names

This page lists what a config or a command line can name, by the base class that it is registered
for. A name leads to its [settings](settings.md). Names are
[never taken back](../design/formats.md).

`python -m benchmarks.reference --write` makes this page from the registries."""


def names_page() -> str:
    """The page."""
    lines = [HEAD]
    for base in KINDS:
        lines += ["", f"## {base.__name__}", ""]
        for one in registered(base):
            lines.append(f"- [`{one.name}`](settings.md#{anchor(one)}): {_told(one)}")
    lines += ["", "## Subcommand", ""]
    for name, command in sorted(COMMANDS.items()):
        lines.append(f"- [`{name}`](commands.md#allennlp-{name}): {command.summary}")
    return "\n".join(lines) + "\n"


def _told(one: Registered) -> str:
    """
    What a class is. One that is registered by several names says it at the constructor of each.
    """
    same = [other for other in registered(one.base) if other.cls is one.cls]
    return first_sentence(text_of(one.documented if len(same) > 1 else parsed(one.cls.__doc__)))
