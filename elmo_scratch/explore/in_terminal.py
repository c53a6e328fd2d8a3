"""What a word's occurrences are near to, in lines for a terminal."""

import difflib
import textwrap
from typing import Callable, Iterator, List, Sequence

from allennlp.common.checks import ConfigurationError

from elmo_scratch.explore.neighbours import Neighbour, Query, answers
from elmo_scratch.explore.occurrences import occurrences, spread
from elmo_scratch.explore.tokens import ExportedTokens, cosines
from elmo_scratch.terminal import clipped, printable, text_width

COLUMNS = 80

MAX_SHOWN = 5
"""Occurrences of a word that are shown."""

BEFORE = 15
"""Columns before a line's words in context."""


def word_lines(
    tokens: ExportedTokens,
    word: str,
    k: int,
    done: Callable[[int], object] = lambda rows: None,
) -> List[str]:
    """
    Describes a word by lines of at most `COLUMNS` columns: for some of its occurrences, whatever
    their case, the `k` nearest neighbours in each layer, and the cosines between the occurrences.
    `done` is told how many more of the file's tokens have been read.

    # Raises

    ConfigurationError
        If the word doesn't occur, or the file is damaged.
    """
    by_word = occurrences(tokens)
    rows = by_word.get(word.casefold())
    if rows is None:
        alike = difflib.get_close_matches(word.casefold(), by_word, n=3)
        hint = f" Did you mean {' or '.join(alike)}?" if alike else ""
        raise ConfigurationError(
            f"{tokens.name}: expected a word of its sentences, but {word!r} is none.{hint}"
        )
    shown = spread(rows, MAX_SHOWN)
    layers = range(tokens.num_layers)[::-1]
    queries = [Query(row, layer, tokens.is_static(layer)) for row in shown for layer in layers]
    found = iter(answers(tokens, queries, k, done))
    times = f"{len(rows):,} occurrence{'s' if len(rows) > 1 else ''}"
    some = f", {len(shown)} of them shown," if len(shown) < len(rows) else ""
    lines = _wrapped(
        f"{printable(word)}: {times}{some} in {len(tokens.sentences):,} sentences of "
        f"{printable(tokens.name)}"
    )
    for number, row in enumerate(shown, start=1):
        lines += ["", _in_context(tokens, row, f"[{number}]")]
        for layer in layers:
            lines += [f" {tokens.layer_name(layer)}", *_neighbours(tokens, next(found), layer)]
    if len(shown) > 1:
        lines += ["", "cosines between these occurrences", *_between(tokens, shown, layers)]
    return lines


def _neighbours(
    tokens: ExportedTokens, neighbours: Sequence[Neighbour], layer: int
) -> Iterator[str]:
    """Words alone in the static layer, where no context counts; otherwise each in its context."""
    if tokens.is_static(layer):
        listed = [f"{printable(found.word)} {found.cosine:.3f}" for found in neighbours]
        yield from _wrapped(", ".join(listed), "  ")
        return
    for found in neighbours:
        row = tokens.row(found.sentence, found.position)
        yield _in_context(tokens, row, f"{found.cosine:7.3f}")


def _between(tokens: ExportedTokens, rows: Sequence[int], layers: Sequence[int]) -> Iterator[str]:
    """A triangle of cosines for each layer that tells occurrences apart."""
    for layer in layers:
        if tokens.is_static(layer):
            continue
        (units,) = tokens.unit_vectors(rows, [layer])
        columns = "".join(f"{f'[{number}]':>7}" for number in range(1, len(rows)))
        yield f" {tokens.layer_name(layer):<10}{columns}"
        for last in range(1, len(rows)):
            triangle = "".join(f"{cosine:7.3f}" for cosine in cosines(units[:last], units[last]))
            yield f"  {f'[{last + 1}]':<9}{triangle}"


def _in_context(tokens: ExportedTokens, row: int, before: str) -> str:
    """A row's word in its sentence, always in the same column, behind the sentence's number."""
    words, position = tokens.context(row)
    shown = [printable(word) for word in words]
    start = f"{before:<8}{tokens.token(row).sentence:>5}  "
    left = clipped(" ".join(shown[:position])[::-1], (COLUMNS - BEFORE) // 2 - 2)[::-1]
    padding = " " * ((COLUMNS - BEFORE) // 2 - 2 - text_width(left))
    rest = " ".join([f"[{shown[position]}]", *shown[position + 1 :]])
    return clipped(f"{start}{padding}{left} {rest}", COLUMNS).rstrip()


def _wrapped(text: str, indent: str = "") -> List[str]:
    return textwrap.wrap(
        text, COLUMNS, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
