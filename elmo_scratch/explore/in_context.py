"""
What a word in its sentence is near to, layer by layer, without a file of layers. A text comes with
the package: words in two senses each, written for it.
"""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Union

import numpy

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.explore.in_terminal import COLUMNS
from elmo_scratch.explore.tokens import cosines, unit_vectors
from elmo_scratch.terminal import clipped, printable

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
