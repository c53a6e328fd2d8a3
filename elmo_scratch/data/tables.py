"""Tells tables by their names, and by what their lines look like."""

import csv
import functools
import logging
import re
from itertools import islice
from os import PathLike, fspath
from pathlib import PurePath
from typing import Iterable, Iterator, List, Optional, Union

from elmo_scratch.data.packed_files import ENDINGS

logger = logging.getLogger(__name__)

LOOKED_AT, FEWEST = 20, 5
"""Lines at the beginning of a text that are looked at, and the fewest that tell something."""

LONGEST = 2**16
"""Characters of a line that is looked at."""

SEPARATORS = {"\t": 2, ",": 3, ";": 3}
"""Separators of columns, and the fewest columns that don't come about in sentences by chance."""


def ending_of(name: Union[str, PathLike]) -> str:
    """
    The last ending of a file's name or an address in lower case, such as `".csv"`, without that of
    a packed file; `""` if it has none.
    """
    name = fspath(name)
    # What follows the path in an address.
    path = PurePath(re.sub("[?#].*", "", name) if "://" in name else name)
    is_packed = path.suffix.lower() in ENDINGS
    return (PurePath(path.stem) if is_packed else path).suffix.lower()


def told_of_rows(lines: Iterable[str], name: str) -> Iterator[str]:
    """Yields the lines of the text `name`, and logs a warning if they look like rows of a table."""
    iterator = iter(lines)
    first: List[str] = []
    for line in islice(iterator, LOOKED_AT):
        first.append(line)
        yield line
    tell_rows(first, name)
    yield from iterator


def tell_rows(lines: Iterable[str], name: str) -> None:
    """Logs a warning if the first lines of the text `name` look like rows of a table."""
    kind = _kind_of(lines)
    if kind is not None:
        _tell(name, kind)


@functools.lru_cache(maxsize=None)
def _tell(name: str, kind: str) -> None:
    """Logs the warning. Each epoch reads a file anew; once is enough for the log."""
    logger.warning(
        "%s: the lines look like %s, but are read as text: separators, quotes and all columns "
        "become words. Write the sentences alone to a file, one a line.",
        name,
        kind,
    )


def _kind_of(lines: Iterable[str]) -> Optional[str]:
    """What lines look like that are no sentences; `None` if they may be sentences."""
    # Blank lines and comments part the sentences of treebanks.
    told = [line for line in islice(lines, LOOKED_AT) if line.strip() and line[0] != "#"]
    if len(told) < FEWEST or any(len(line) > LONGEST for line in told):
        return None
    if all(line.strip().startswith("{") and line.strip().endswith("}") for line in told):
        return "objects of JSON"
    for separator, fewest in SEPARATORS.items():
        rows = list(csv.reader(told, delimiter=separator))
        if len(rows) > FEWEST:
            # Its end may be missing, where a quoted field holds line ends.
            rows.pop()
        widths = {len(row) for row in rows}
        if len(rows) >= FEWEST and len(widths) == 1 and min(widths) >= fewest:
            return f"rows of a table with {min(widths)} columns"
    return None
