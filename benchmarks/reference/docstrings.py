"""Docstrings of the form of AllenNLP: a text, then sections such as `# Parameters`."""

import inspect
import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple


class Entry(NamedTuple):
    """
    What `# Parameters` says of one argument: its default and its text. The default is `None` where
    the docstring has none.
    """

    default: Optional[str]
    text: str


class Docstring(NamedTuple):
    """The text before the first section, the entries of `# Parameters`, and `# Source`."""

    text: str
    parameters: Dict[str, Entry]
    source: str


CODE = re.compile(r"(`[^`]*`)")
"""What Markdown takes as it stands."""

HEADER = re.compile(r"(\w+(?:, \w+)*)(?: *:.*?(?:\(default *= *(.*)\))?)?", re.DOTALL)


def parsed(docstring: Optional[str]) -> Docstring:
    """Takes a docstring, or `None`, to its parts."""
    text, *rest = re.split(r"^# (\w+)\n", inspect.cleandoc(docstring or "") + "\n", flags=re.M)
    sections = dict(zip(rest[::2], rest[1::2]))
    return Docstring(
        text.strip(),
        dict(_entries(sections.get("Parameters", ""))),
        sections.get("Source", "").strip(),
    )


def _entries(section: str) -> Iterator[Tuple[str, Entry]]:
    """Yields the names of a section of parameters, one by one."""
    blocks: List[List[str]] = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            blocks.append([line])
        elif blocks:
            blocks[-1].append(line)
    for header, *lines in blocks:
        found = HEADER.fullmatch(header.strip())
        if found is None:
            raise ValueError(f"expected `name : type` in # Parameters, but got {header!r}")
        text = inspect.cleandoc("\n".join(["", *lines])).strip()
        for name in found[1].split(", "):
            yield name, Entry(found[2], text)


def escaped(text: str) -> str:
    """Plain text for Markdown: what would be a tag or emphasis, outside of code, is neither."""
    pieces = CODE.split(text)
    pieces[::2] = [re.sub(r"([*<])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)


def first_sentence(text: str) -> str:
    """The first sentence of a text, or what stands in it before a colon."""
    sentence = ""
    for number, piece in enumerate(CODE.split(" ".join(text.split("\n\n")[0].split()))):
        end = None if number % 2 else re.search(r"[.:](?=\s|$)", piece)
        sentence += piece[: end.start()] if end else piece
        if end:
            break
    return f"{sentence}."
