"""
An extension of griffe's, by which mkdocstrings understands the sections of this package's
docstrings: they become those of numpy's form, whose types and defaults are read from signatures.

mkdocs loads it by its path, so it imports nothing of the project.
"""

import re
from typing import Any

import griffe

SECTION = re.compile(r"^# (\w+)\n+", re.MULTILINE)
PARAMETER = re.compile(r"^(\w+(?:, \w+)*) : .*$", re.MULTILINE)


def in_numpys_form(docstring: str) -> str:
    """A docstring with the sections `# Parameters`, `# Returns`, `# Raises` and `# Source`."""
    text, *rest = SECTION.split(docstring)
    for title, body in zip(rest[::2], rest[1::2]):
        if title == "Parameters":
            body = PARAMETER.sub(r"\1", body)
        elif title == "Returns":
            body = re.sub(r"^`(.*)`$", r"\1", body, flags=re.MULTILINE)
        text += f"{title}\n{'-' * len(title)}\n{body}"
    return text


class Sections(griffe.Extension):
    """Changes each docstring before it is read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = in_numpys_form(obj.docstring.value)
