"""Files of layers with a few sentences."""

from pathlib import Path
from typing import Iterable, Sequence

import numpy

from elmo_scratch.interop import LayerFileFacts, LayerFileWriter

LAYERS, WIDTH = 3, 4

FACTS = LayerFileFacts(
    model="sha256:0123",
    export="sha256:4567",
    kept="all",
    pool=None,
    layers=LAYERS,
    width=WIDTH,
    dtype="float32",
    state="reset",
)


def vectors_of(sentence: str, facts: LayerFileFacts = FACTS) -> numpy.ndarray:
    """Random vectors that belong to a sentence."""
    seed = int.from_bytes(sentence.encode("utf-8", "surrogatepass"), "little")
    layers = numpy.random.default_rng(seed).normal(
        size=(facts.layers, len(sentence.split()), facts.width)
    )
    if facts.pool is not None:
        layers = layers.mean(axis=1)
    return (layers if facts.kept == "all" else layers[-1]).astype(facts.dtype)


def write_layers(
    path: Path,
    sentences: Sequence[str],
    facts: LayerFileFacts = FACTS,
    *,
    keys: Iterable[str] = (),
    has_index: bool = True,
) -> Path:
    """A file of the vectors of sentences; without `keys` these are numbers."""
    keys = list(keys) or [str(number) for number in range(len(sentences))]
    with LayerFileWriter.open(path, facts) as writer:
        for key, sentence in zip(keys, sentences, strict=True):
            writer.write(key, vectors_of(sentence, facts))
        if has_index:
            writer.write_index(zip(sentences, keys))
    return path
