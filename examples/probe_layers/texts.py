"""The texts that the probes learn from and are measured on."""

import re
import sys
from itertools import chain, islice
from typing import Iterator, List, NamedTuple, Tuple

from allennlp.common.checks import ConfigurationError
from conllu import parse_incr
from conllu.exceptions import ParseException

Tagged = List[Tuple[List[str], List[str]]]
"""Sentences as words and tags."""


class Pair(NamedTuple):
    """Two sentences with a word in each, and whether it has one sense."""

    sentences: Tuple[List[str], List[str]]
    places: Tuple[int, int]
    is_same: bool


class Texts(NamedTuple):
    """What the probes learn from, then what they are measured on; nothing for what is not asked."""

    tagged: List[Tagged]
    pairs: List[List[Pair]]

    def sentences(self) -> Iterator[List[str]]:
        """All of them."""
        for words, _ in chain(*self.tagged):
            yield words
        for pair in chain(*self.pairs):
            yield from pair.sentences


def tagged(path: str, at_most: int = sys.maxsize) -> Tagged:
    """The sentences of a CoNLL-U file, by their syntactic words."""
    try:
        with open(path, encoding="utf-8") as file:
            sentences = [
                [token for token in sentence if isinstance(token["id"], int)]
                for sentence in islice(parse_incr(file), at_most)
            ]
    except (ParseException, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: expected CoNLL-U in UTF-8: {error}") from None
    if not any("upos" in token for words in sentences for token in words):
        raise ConfigurationError(f"{path}: expected words with parts of speech, but found none")
    return [([t["form"] for t in words], [t["upos"] for t in words]) for words in sentences]


def pairs_of(path: str) -> List[Pair]:
    """The pairs of a part of Word in Context."""
    lines, gold = (lines_of(f"{path}.{kind}.txt") for kind in ("data", "gold"))
    if len(lines) != len(gold):
        raise ConfigurationError(
            f"{path}.gold.txt: expected an answer for each of the {len(lines)} lines of "
            f"{path}.data.txt, but found {len(gold)}"
        )
    return [
        pair_of(line, answer, f"{path}.data.txt and {path}.gold.txt, line {number}")
        for number, (line, answer) in enumerate(zip(lines, gold), start=1)
    ]


def pair_of(line: str, answer: str, place: str) -> Pair:
    """One line: the word, its part of speech, its place in both sentences, and these."""
    cells = line.split("\t")
    places = re.fullmatch(r"(\d+)-(\d+)", cells[2]) if len(cells) == 5 else None
    if places is None or answer not in ("T", "F"):
        raise ConfigurationError(
            f"{place}: expected a word, a part of speech, two places such as 0-4, and two "
            f"sentences, between tabs, and the answer T or F; found {line!r} and {answer!r}"
        )
    pair = Pair(
        (cells[3].split(), cells[4].split()), (int(places[1]), int(places[2])), answer == "T"
    )
    for number, words in zip(pair.places, pair.sentences):
        if number >= len(words):
            raise ConfigurationError(f"{place}: there is no word {number} among {len(words)}")
    return pair


def lines_of(path: str) -> List[str]:
    """The lines of a text; other than `str.splitlines`, not cut at what Unicode calls a line."""
    try:
        with open(path, encoding="utf-8") as file:
            return [line.rstrip("\n") for line in file]
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: expected UTF-8: {error}") from None
