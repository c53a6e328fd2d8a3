"""
How often the layers of a model tell two senses of a word apart: the share of a word's occurrences
whose nearest other occurrence has the same sense, over the sentences of `read_senses`.

    python examples/tiny_model/tiny_senses.py --model tiny
"""

import argparse
from typing import Dict, List, Sequence

import numpy

from elmo_scratch import SentenceLayers
from elmo_scratch.explore import SenseSentence, read_senses


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="tiny", help="of any kind (default: tiny)")
    print("\n".join(sense_table(parser.parse_args().model)))


def sense_table(model: str) -> List[str]:
    """The lines of a table: each word, and all of them, by layer, beside chance."""
    rows = read_senses()
    vectors = SentenceLayers(model, state="reset")([row.sentence for row in rows])
    of_rows = numpy.stack([found[:, row.position] for found, row in zip(vectors, rows)])
    found: Dict[str, List[int]] = {}
    for word in dict.fromkeys(row.word for row in rows):
        places = [place for place, row in enumerate(rows) if row.word == word]
        senses = [rows[place].sense for place in places]
        found[word] = same_sense(of_rows[places], senses)
    counts = numpy.array(list(found.values()))  # (words, contextual layers)
    total, chance = len(rows), _chance(rows)
    layers = [f"layer {layer}" for layer in range(1, counts.shape[1] + 1)]
    lines = [
        f"| word | occurrences | {' | '.join(layers)} |",
        "|---|" + "---:|" * (len(layers) + 1),
    ]
    for word, hits in found.items():
        size = sum(row.word == word for row in rows)
        lines.append(f"| {word} | {size} | {' | '.join(map(str, hits))} |")
    shares = [f"{hits / total:.1%}" for hits in counts.sum(axis=0)]
    lines.append(f"| all | {total} | {' | '.join(shares)} |")
    lines.append(f"| chance | | {' | '.join([f'{chance:.1%}'] * len(layers))} |")
    return lines


def same_sense(vectors: numpy.ndarray, senses: Sequence[str]) -> List[int]:
    """
    Counts, for each layer above the static one, the occurrences of a word whose nearest other
    occurrence has the same sense. `vectors` has the shape `(occurrences, layers, width)`.
    """
    counts = []
    for layer in range(1, vectors.shape[1]):
        units = vectors[:, layer].astype("float64")
        units /= numpy.linalg.norm(units, axis=1, keepdims=True)
        cosines = units @ units.T
        numpy.fill_diagonal(cosines, -numpy.inf)
        nearest = cosines.argmax(axis=1)
        counts.append(sum(senses[at] == senses[place] for place, at in enumerate(nearest)))
    return counts


def _chance(rows: Sequence[SenseSentence]) -> float:
    """The share that a neighbour drawn at random among a word's other occurrences would reach."""
    shares = []
    for row in rows:
        others = [other for other in rows if other.word == row.word and other is not row]
        shares.append(sum(other.sense == row.sense for other in others) / len(others))
    return sum(shares) / len(shares)


if __name__ == "__main__":
    main()
