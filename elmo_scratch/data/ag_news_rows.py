"""The rows of an AG News file, checked one by one."""

import csv
from os import PathLike
from typing import Iterator, NamedTuple, Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.text_lines import text_lines

CLASS_NAMES = {"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"}
"""The class numbers of AG News and their names, in the order of the data set's `classes.txt`."""

LONGEST_FIELD = 2**26
"""Characters of a title or a description."""


class AgNewsRow(NamedTuple):
    """
    One news item.

    # Parameters

    label : `str`
        The name of the class, one of `CLASS_NAMES`' values.
    title : `str`
        The headline.
    description : `str`
        The text below the headline, line breaks restored.
    """

    label: str
    title: str
    description: str


def ag_news_rows(path: Union[str, PathLike]) -> Iterator[AgNewsRow]:
    """
    Yields the rows of a comma-separated file of class number, title and description.

    Fields may be quoted, a quote inside is doubled, and there is no header line. The published
    files write a line break as a backslash, which is turned back here.

    # Raises

    ConfigurationError
        If the file is empty or not UTF-8, holds no row, a row does not have three columns, or a
        class is not one of 1 to 4; the message names the line.

    # Source

    Zhang, Zhao and LeCun 2015, "Character-level Convolutional Networks for Text Classification".
    """
    # For the whole process; Python's own bound is there for memory alone.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    rows = csv.reader(text_lines(path), strict=True)
    empty = True
    while True:
        try:
            columns = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            raise ConfigurationError(
                f"{path}, line {rows.line_num}: not a valid comma-separated row ({error})"
            ) from None
        if not columns:
            continue
        if len(columns) != 3:
            raise ConfigurationError(
                f"{path}, line {rows.line_num}: expected the three columns class, title and "
                f"description, but found {len(columns)}"
            )
        number, title, description = columns
        if number not in CLASS_NAMES:
            raise ConfigurationError(
                f"{path}, line {rows.line_num}: expected a class from 1 to 4, but found "
                f"{number!r}. Remove the line if it is a header."
            )
        empty = False
        yield AgNewsRow(CLASS_NAMES[number], restored(title), restored(description))
    if empty:
        raise ConfigurationError(
            f"{path}: expected rows of class, title and description, but found only blank lines"
        )


def ag_news_text(description: str, title: str, use_title: bool) -> str:
    """The text of a row: its description, with `use_title` after its title and a line break."""
    return f"{title}\n{description}" if use_title else description


def restored(text: str) -> str:
    """
    # Parameters

    text : `str`
        A title or a description, as the published files have it.

    # Returns

    `str`
        The same with line breaks in the place of backslashes.
    """
    return text.replace("\\", "\n").strip()
