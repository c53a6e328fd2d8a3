"""
What a word in its sentence is near to, layer by layer, without a file of layers. A text comes with
the package: words in two senses each, written for it.
"""

import difflib
import textwrap
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Union

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.explore.neighbours import Neighbour, Query, answers, occurrences, spread
from elmo_scratch.explore.tokens import ExportedTokens, cosines, unit_vectors
from elmo_scratch.terminal import clipped, counted, printable, text_width

SENSES_FILE = Path(__file__).parent / "senses.tsv"
"""A line has a word, the name of its sense, and a sentence that holds the word once."""


class SenseSentence(NamedTuple):
    """A word, the name of its sense, and the words of a sentence that holds it once."""

    word: str
    sense: str
    sentence: List[str]

    @property
    def position(self) -> int:
        """The word's place in the sentence, from 0."""
        return self.sentence.index(self.word)


def read_senses() -> List[SenseSentence]:
    """
    Returns 96 sentences: six words (bank, court, match, party, plant, spring) in two senses each,
    eight sentences a sense. No model of this package was trained on them.
    """
    rows = (line.split("\t") for line in SENSES_FILE.read_text("utf-8").splitlines())
    return [SenseSentence(word, sense, sentence.split()) for word, sense, sentence in rows]


Sentence = Union[str, Sequence[str]]
"""Words, or a text in which they stand between white space."""


class ContextNeighbour(NamedTuple):
    """A word in its sentence, and the cosine of its vector and the vector that was asked about."""

    sentence: List[str]
    position: int
    cosine: float

    @property
    def word(self) -> str:
        return self.sentence[self.position]


@dataclass(frozen=True)
class LayerNeighbours:
    """
    The neighbours of a word in its sentence. `str` and `print` show them in lines of at most 80
    columns: words in the static layer, where no context counts, and sentences above it.

    # Parameters

    sentence : `List[str]`
        The sentence.
    position : `int`
        The word's place in it, from 0.
    layers : `List[List[ContextNeighbour]]`
        For each layer, the static one first, the neighbours, the nearest first.
    """

    sentence: List[str]
    position: int
    layers: List[List[ContextNeighbour]]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield clipped(_marked(self.sentence, self.position), COLUMNS)
        for layer, neighbours in enumerate(self.layers):
            if layer == 0:
                listed = (f"{printable(found.word)} {found.cosine:.2f}" for found in neighbours)
                yield clipped(f"  layer 0  {', '.join(listed)}", COLUMNS)
                continue
            name = f"layer {layer}"
            for found in neighbours:
                shown = _marked(found.sentence, found.position)
                yield clipped(f"  {name:<8} {found.cosine:.2f} {shown}", COLUMNS)
                name = ""


def nearest_by_layer(
    model: Union[str, PathLike, SentenceLayers],
    sentence: Sentence,
    word: str,
    *,
    among: Optional[Iterable[Sentence]] = None,
    k: int = 3,
) -> LayerNeighbours:
    """
    Finds the nearest neighbours of a word in its sentence, by the cosine of vectors, among all
    words of some sentences. In the static layer, where all tokens of a word have one vector, each
    word counts once and the word itself not at all. Everything is held in memory: for a large text
    export its layers and use `nearest`.

    # Parameters

    model : `Union[str, PathLike, SentenceLayers]`
        A model of any kind that `read_bilm` reads, such as `"tiny"`. Each sentence starts from
        zeros; a `SentenceLayers` reads them by its own state.
    sentence : `Union[str, Sequence[str]]`
        The words, or a text in which they stand between white space.
    word : `str`
        A word of the sentence, in any case. Of several the first is taken.
    among : `Iterable[Union[str, Sequence[str]]]`, optional (default = `read_senses()`)
        The sentences to search. `sentence` itself is passed over.
    k : `int`, optional (default = `3`)
        How many neighbours a layer.

    # Returns

    `LayerNeighbours`
        For each layer `k` words, or as many as there are; equal ones in the order of the text.

    # Raises

    ConfigurationError
        If the model can't be read.
    ValueError
        If the word is not in the sentence, there is nothing to search, or `k` is below 1.
    """
    if k < 1:
        raise ValueError(f"expected `k` of 1 or more, but got {k}")
    words = _words_of(sentence)
    forms = [each.casefold() for each in words]
    if word.casefold() not in forms:
        raise ValueError(
            f"expected a word of the sentence {' '.join(words)!r}, but got {word!r}. Words stand "
            "between white space: set full stops and commas apart"
        )
    position = forms.index(word.casefold())
    given = [row.sentence for row in read_senses()] if among is None else map(_words_of, among)
    searched = [each for each in given if each and each != words]
    if not searched:
        raise ValueError("expected sentences in `among`, beside the one asked about, but got none")
    reader = model if isinstance(model, SentenceLayers) else SentenceLayers(model, state="reset")
    asked, *others = reader([words, *searched])  # (layers, tokens, width) each
    asked_units = unit_vectors(asked[:, position])
    units = unit_vectors(numpy.concatenate(others, axis=1))
    tokens = [(each, place) for each in searched for place in range(len(each))]
    layers = []
    for layer, (of_layer, of_asked) in enumerate(zip(units, asked_units)):
        found = cosines(of_layer, of_asked)
        order = numpy.argsort(-found, kind="stable")  # tokens of equal cosines stay in order
        neighbours: Iterator[ContextNeighbour] = (
            ContextNeighbour(tokens[row][0], tokens[row][1], float(found[row])) for row in order
        )
        if layer == 0:
            neighbours = _each_word_once(neighbours, forms[position])
        layers.append([neighbour for neighbour, _ in zip(neighbours, range(k))])
    return LayerNeighbours(words, position, layers)


def _words_of(sentence: Sentence) -> List[str]:
    return sentence.split() if isinstance(sentence, str) else list(sentence)


def _each_word_once(
    neighbours: Iterable[ContextNeighbour], but_for: str
) -> Iterator[ContextNeighbour]:
    """Yields the nearest neighbour of each word, whatever its case, other than `but_for`."""
    known: Set[str] = {but_for}
    for neighbour in neighbours:
        form = neighbour.word.casefold()
        if form not in known:
            known.add(form)
            yield neighbour


def _marked(sentence: Sequence[str], position: int) -> str:
    """The sentence with a word in brackets."""
    words = [printable(word) for word in sentence]
    words[position] = f"[{words[position]}]"
    return " ".join(words)


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
    times = counted(len(rows), "occurrence")
    some = f", {len(shown)} of them shown," if len(shown) < len(rows) else ""
    lines = _wrapped(
        f"{printable(word)}: {times}{some} in "
        f"{counted(len(tokens.sentences), 'sentence')} of {printable(tokens.name)}"
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
