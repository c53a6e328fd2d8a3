"""
What each way of treating the LSTM state costs: how far vectors lie apart, and what a classifier
makes of them.

    python benchmarks/states.py train.csv dev.csv --weight-file model.tar.gz

For AG News files: the distance between the vectors of dev's tokens with carried states and with
`reset` and `warm`, relative to their length and as cosine; how much carried vectors change when the
same texts come in another order; and the accuracy of a logistic regression on the mean over the
tokens of each layer, trained and measured with each state.
"""

import argparse
import random
import time
from typing import Dict, Iterator, List

import numpy
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from elmo_scratch import SentenceLayers
from elmo_scratch.data import SpacyBlankTokenizer
from elmo_scratch.data.readers import AgNewsRow, ag_news_rows
from elmo_scratch.export import ModelSource

STATES = ("carry", "reset", "warm")
BATCH_SIZE = 64
MAX_TOKENS = 100

Sentences = List[List[str]]


def main() -> None:
    """Prints two tables in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train", help="an AG News file to train on")
    parser.add_argument("dev", help="an AG News file to measure on")
    parser.add_argument("--weight-file", required=True, help="official weights, or an archive")
    parser.add_argument("--options-file", help="official options")
    parser.add_argument("--rows", type=int, help="of each file, at most (default: all)")
    args = parser.parse_args()
    train, dev = (list(ag_news_rows(path))[: args.rows] for path in (args.train, args.dev))
    texts = {"train": words_of(train), "dev": words_of(dev)}
    sources = {
        state: ModelSource(
            args.options_file,
            args.weight_file,
            state,
            warm_up=texts["train"][:100] if state == "warm" else None,
        )
        for state in STATES
    }
    print_distances(sources, texts["dev"])
    labels = {"train": [row.label for row in train], "dev": [row.label for row in dev]}
    print_accuracies(sources, texts, labels)


def words_of(rows: List[AgNewsRow]) -> Sentences:
    """The words of each description."""
    tokenizer = SpacyBlankTokenizer()
    return [
        [token.text for token in tokenizer.tokenize(row.description)][:MAX_TOKENS] or ["."]
        for row in rows
    ]


def layers_of(source: ModelSource, texts: Sentences) -> Iterator[numpy.ndarray]:
    """The layers of each text, shape `(layers, tokens, width)`, in batches from zeros."""
    layers: SentenceLayers = source.load()
    for start in range(0, len(texts), BATCH_SIZE):
        yield from layers(texts[start : start + BATCH_SIZE])


def print_distances(sources: Dict[str, ModelSource], texts: Sentences) -> None:
    """Prints how far vectors lie from those with carried states."""
    order = list(range(len(texts)))
    random.Random(0).shuffle(order)
    shuffled = dict(zip(order, layers_of(sources["carry"], [texts[place] for place in order])))
    others = {"carry, texts in another order": [shuffled[place] for place in range(len(texts))]}
    carried = list(layers_of(sources["carry"], texts))
    for state in ("reset", "warm"):
        others[state] = list(layers_of(sources[state], texts))
    print("| beside `carry` | layer | distance / length | cosine |\n|---|---|---:|---:|")
    for name, vectors in others.items():
        for layer in range(1, len(carried[0])):
            one = numpy.concatenate([text[layer] for text in carried])
            other = numpy.concatenate([text[layer] for text in vectors])
            length = numpy.linalg.norm(one, axis=1)
            distance = numpy.linalg.norm(one - other, axis=1) / length
            cosine = (one * other).sum(axis=1) / (length * numpy.linalg.norm(other, axis=1))
            print(f"| {name} | LSTM {layer} | {distance.mean():.3f} | {cosine.mean():.4f} |")


def print_accuracies(
    sources: Dict[str, ModelSource], texts: Dict[str, Sentences], labels: Dict[str, List[str]]
) -> None:
    """Prints what a classifier reaches with each state."""
    print("\n| state | accuracy on dev | seconds for the vectors |\n|---|---:|---:|")
    for state in STATES:
        started = time.perf_counter()
        vectors = {
            part: numpy.stack(
                [layers.mean(axis=1).ravel() for layers in layers_of(sources[state], texts[part])]
            )
            for part in ("train", "dev")
        }
        seconds = time.perf_counter() - started
        classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
        classifier.fit(vectors["train"], labels["train"])
        accuracy = classifier.score(vectors["dev"], labels["dev"])
        print(f"| `{state}` | {accuracy:.1%} | {seconds:.0f} |")


if __name__ == "__main__":
    main()
