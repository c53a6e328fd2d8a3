"""Files of layers with a few tokens, and their neighbours by the plainest way to find them."""

from pathlib import Path
from typing import List, Sequence, Tuple

import numpy

from elmo_scratch.explore import Neighbour
from elmo_scratch.interop import LayerFileFacts, LayerFileWriter
from tests.interop.layer_files.tiny_layers import FACTS, vectors_of

SENTENCES = [
    "They sat on the bank of the river .",
    "The bank raised its rates .",
    "A bat slept in a cave near the bank",
    "</script><script>alert(1)</script> & <b>bold</b>",
    "The bank of the river",
    "Où est la banque ? 銀行",
]
"""Of 9, 6, 9, 3, 5 and 6 tokens; `bank` occurs 4 times."""


def layers_of(sentence: str, facts: LayerFileFacts = FACTS) -> numpy.ndarray:
    """Random layers, of which the lowest depends on the word alone, as in a biLM."""
    layers = vectors_of(sentence, facts._replace(kept="all")).copy()
    layers[0] = [vectors_of(word)[0, 0] for word in sentence.split()]
    return layers if facts.kept == "all" else layers[-1]


def write_explored(
    path: Path, sentences: Sequence[str] = SENTENCES, facts: LayerFileFacts = FACTS
) -> Path:
    """A file of the layers of sentences, with the numbers of lines for keys."""
    with LayerFileWriter.open(path, facts) as writer:
        for number, sentence in enumerate(sentences):
            writer.write(str(number), layers_of(sentence, facts))
        writer.write_index((sentence, str(number)) for number, sentence in enumerate(sentences))
    return path


def by_brute_force(
    vectors: numpy.ndarray, row: int, sentences: Sequence[str] = SENTENCES
) -> List[Neighbour]:
    """All other rows, the nearest first, given the vectors of all rows, `(rows, width)`."""
    places: List[Tuple[int, int, str]] = [
        (number, position, word)
        for number, sentence in enumerate(sentences)
        for position, word in enumerate(sentence.split())
    ]
    vectors = vectors.astype("float64")
    lengths = numpy.linalg.norm(vectors, axis=1)
    found = vectors @ vectors[row] / (lengths * lengths[row])
    order = sorted(range(len(found)), key=lambda other: (-round(found[other], 6), other))
    return [Neighbour(*places[other], found[other]) for other in order if other != row]
