"""How a command closes: what was reached, where it lies, and what to type next."""

from datetime import timedelta
from typing import Dict, List, Sequence

NAMES_WIDTH = 13


def closing_lines(
    reached: Sequence[str], places: Dict[str, object], steps: Sequence[str] = ()
) -> List[str]:
    """
    # Parameters

    reached : `Sequence[str]`
        What was reached, line by line.
    places : `Dict[str, object]`
        Where it lies: what it is, in at most 12 characters, to its path.
    steps : `Sequence[str]`, optional (default = none)
        Commands that go on with it, as one would type them in a shell.

    # Returns

    `List[str]`
        The lines, the first one empty.
    """
    lines = ["", *reached]
    if places or steps:
        lines.append("")
    lines += [f"{name:{NAMES_WIDTH}}{place}" for name, place in places.items()]
    names = ["next", *[""] * len(steps)]
    return lines + [f"{name:{NAMES_WIDTH}}{step}" for name, step in zip(names, steps)]


def duration(seconds: float) -> str:
    """Returns `"4.1 s"`, or from a minute on `"1:02:03"`."""
    return f"{seconds:.1f} s" if seconds < 59.95 else str(timedelta(seconds=round(seconds)))


def counted(number: int, name: str) -> str:
    """Returns `"1 token"` or `"2,048 tokens"`."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"
