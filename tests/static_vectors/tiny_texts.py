"""Texts for static vectors: a few lines, and a corpus that has structure."""

import random
from typing import Any, Dict, List

import numpy

from elmo_scratch.static_vectors import NumberedText, VectorText

TOPICS = {
    "river": "bank water boat fish reed mud bridge current",
    "money": "loan rate cash fund share profit coin price",
    "fruit": "apple pear plum juice tree seed pie basket",
}
"""Words that stand beside their own kind, and never beside another."""


def numbered(*lines: str) -> NumberedText:
    """One sentence a line."""
    numbers: Dict[str, int] = {}
    sentences = [
        [numbers.setdefault(word, len(numbers)) for word in line.split()] for line in lines
    ]
    tokens = numpy.array([number for sentence in sentences for number in sentence], numpy.uintc)
    return NumberedText(
        list(numbers),
        numpy.bincount(tokens, minlength=len(numbers)),
        tokens,
        numpy.cumsum([0, *map(len, sentences)]),
    )


def text_of(*lines: str, **settings: Any) -> VectorText:
    """All words of the lines get vectors, unless the settings say otherwise."""
    return VectorText(numbered(*lines), **{"min_count": 1, **settings})


def lines_of_topics(number: int = 400) -> List[str]:
    """Sentences of seven words of one topic each, and two words that stand everywhere."""
    chosen = random.Random(3)
    topics = [words.split() for words in TOPICS.values()]
    return [
        " ".join(["the", *chosen.choices(topics[line % len(topics)], k=7), "."])
        for line in range(number)
    ]


def share_of_right_neighbours(words: List[str], vectors: numpy.ndarray) -> float:
    """How many of the seven nearest neighbours of a word are of its topic, by the cosine."""
    topic_of = {word: topic for topic, named in TOPICS.items() for word in named.split()}
    places = [place for place, word in enumerate(words) if word in topic_of]
    unit = vectors[places] / numpy.linalg.norm(vectors[places], axis=1, keepdims=True)
    likeness = unit @ unit.T
    numpy.fill_diagonal(likeness, -2)
    topics = numpy.array([topic_of[words[place]] for place in places])
    nearest = numpy.argsort(-likeness, axis=1)[:, :7]
    return float((topics[nearest] == topics[:, None]).mean())
