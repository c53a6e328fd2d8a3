"""The vectors of sentences: layers of a biLM, or one vector a word."""

from typing import Callable, List, Sequence

import numpy

from elmo_scratch import LayerFile
from elmo_scratch.interop.static_vectors import StaticVectors

Vectors = Callable[[Sequence[List[str]]], List[numpy.ndarray]]
"""From sentences to an array of each, shape `(layers, tokens, width)`."""

Known = Callable[[str], bool]
"""Whether all files of static vectors have a word."""


def line_of(words: Sequence[str], lowercase: bool) -> str:
    """As a biLM reads them; white space in a word would divide it."""
    line = " ".join("_".join(word.split()) for word in words)
    return line.lower() if lowercase else line


def contextual(layers: LayerFile, lowercase: bool) -> Vectors:
    """The layers of a biLM."""
    return lambda sentences: [layers[line_of(words, lowercase)] for words in sentences]


def static(file: StaticVectors, lowercase: bool) -> Vectors:
    """One layer, of vectors from a file; zeros for words that it lacks."""
    rows = {word: row for row, word in enumerate(file.words)}
    table = numpy.vstack([file.vectors, numpy.zeros_like(file.vectors[:1])])

    def vectors(sentences: Sequence[List[str]]) -> List[numpy.ndarray]:
        return [
            table[[rows.get(word.lower() if lowercase else word, -1) for word in words]][None]
            for words in sentences
        ]

    return vectors


def known_to(files: Sequence[StaticVectors], lowercase: bool) -> Known:
    """Every word, where there are no files."""
    vocabularies = [set(file.words) for file in files]

    def known(word: str) -> bool:
        word = word.lower() if lowercase else word
        return all(word in vocabulary for vocabulary in vocabularies)

    return known
