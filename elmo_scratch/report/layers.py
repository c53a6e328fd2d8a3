"""
A file of layers in a report: what its vectors are like, by a sample of its tokens, and the section
that tells it.
"""

import random
from pathlib import Path
from typing import List, NamedTuple, Optional, Sequence

import numpy

from elmo_scratch.explore.tokens import cosines, unit_vectors
from elmo_scratch.files.strict_json import printable
from elmo_scratch.interop import LayerFile, LayerFileFacts
from elmo_scratch.report.charts import histogram
from elmo_scratch.report.document import (
    Block,
    Cell,
    Column,
    Paragraph,
    Section,
    Table,
    metric_cell,
)

MAX_SENTENCES, MAX_VECTORS, MAX_NUMBERS = 1000, 4096, 2**23
"""
The sample has no more sentences, vectors of a layer, or numbers: 2**23 take 32 MiB in float32. One
vector is always in it.
"""

NUM_PAIRS = 10_000
"""Random pairs of vectors of which the cosine is taken, in each layer."""

SEED = 13
"""It decides on the sample and the pairs: the same file gives the same numbers."""


class LayerStatistics(NamedTuple):
    """
    What the vectors of one layer are like.

    # Parameters

    norm, norm_deviation : `float`
        The mean norm of a vector, and its standard deviation.
    cosine_below, cosine_lowest : `float`, optional
        The mean cosine of a token's vector with its vector in the layer below, and in the lowest
        layer; `None` for the lowest layer itself.
    pairs : `List[float]`
        The cosines of random pairs of vectors of two sentences; empty if there is one sentence.
    """

    norm: float
    norm_deviation: float
    cosine_below: Optional[float]
    cosine_lowest: Optional[float]
    pairs: List[float]

    @property
    def anisotropy(self) -> Optional[float]:
        """
        The mean cosine of random pairs: 0 where vectors point in all directions, 1 where all point
        in one. `None` without pairs.
        """
        return float(numpy.mean(self.pairs)) if self.pairs else None


class DescribedLayers(NamedTuple):
    """
    A file of layers.

    # Parameters

    path : `Path`
        The file.
    num_bytes, num_sentences : `int`
        Its size, and the number of its sentences.
    facts : `LayerFileFacts`
        What it says of itself.
    knows_sentences : `bool`
        Whether it holds its sentences too.
    sampled_sentences, sampled_tokens, sampled_vectors : `int`
        Sentences of the sample, their tokens or, if these were pooled, the sentences once more; and
        how many of them have their vectors in it.
    left_out : `int`
        How many have not since these hold infinity or NaN.
    layers : `List[LayerStatistics]`
        From the lowest on; empty if the sample has no vector.
    """

    path: Path
    num_bytes: int
    num_sentences: int
    facts: LayerFileFacts
    knows_sentences: bool
    sampled_sentences: int
    sampled_tokens: int
    sampled_vectors: int
    left_out: int
    layers: List[LayerStatistics]


def describe_layers(path: Path) -> DescribedLayers:
    """
    # Parameters

    path : `Path`
        A file that `allennlp elmo` wrote, or AllenNLP 0.9.

    # Returns

    `DescribedLayers`
        The same for the same file.

    # Raises

    ConfigurationError
        If it is something else, or damaged where the sample lies.
    """
    chooser = random.Random(SEED)
    with LayerFile(path) as file:
        keys = list(file.keys())
        # A sample of all places: taken from a list, it is in a random order.
        chosen = chooser.sample(keys, min(len(keys), MAX_SENTENCES))
        sampled: List[numpy.ndarray] = []
        num_tokens = num_numbers = left_out = 0
        for key in chosen:
            vectors = _by_layer(file, key)
            num_numbers += vectors.size
            is_full = num_tokens + vectors.shape[1] > MAX_VECTORS or num_numbers > MAX_NUMBERS
            if sampled and is_full:
                break
            num_tokens += vectors.shape[1]
            finite = numpy.isfinite(vectors).all(axis=(0, 2))
            left_out += int((~finite).sum())
            sampled.append(vectors[:, finite][:, :MAX_VECTORS])
        return DescribedLayers(
            path,
            path.stat().st_size,
            len(file),
            file.facts,
            next(file.sentences(), None) is not None,
            len(sampled),
            num_tokens,
            sum(one.shape[1] for one in sampled),
            left_out,
            _statistics(sampled, chooser),
        )


def _by_layer(file: LayerFile, key: str) -> numpy.ndarray:
    """The vectors of a sentence, shape `(layers, tokens, width)`, one token if they were pooled."""
    vectors = file.read(key)
    if file.facts.pool is not None:
        vectors = vectors[..., None, :]
    return vectors if file.facts.kept == "all" else vectors[None]


def _statistics(sampled: Sequence[numpy.ndarray], chooser: random.Random) -> List[LayerStatistics]:
    """Measures each layer of sentences, each of shape `(layers, tokens, width)`."""
    if not sum(one.shape[1] for one in sampled):
        return []
    vectors = numpy.concatenate(sampled, axis=1).astype("float64")
    sentence = numpy.repeat(range(len(sampled)), [one.shape[1] for one in sampled])
    units = unit_vectors(vectors)
    norms = numpy.sqrt((vectors * vectors).sum(axis=-1))  # (layers, tokens)
    draws = numpy.array([chooser.randrange(len(sentence)) for _ in range(2 * NUM_PAIRS)])
    first, second = draws.reshape(2, -1)
    apart = sentence[first] != sentence[second]
    first, second = first[apart], second[apart]
    return [
        LayerStatistics(
            float(norms[layer].mean()),
            float(norms[layer].std()),
            float(cosines(units[layer], units[layer - 1]).mean()) if layer else None,
            float(cosines(units[layer], units[0]).mean()) if layer else None,
            _pair_cosines(units[layer], first, second),
        )
        for layer in range(len(units))
    ]


def _pair_cosines(units: numpy.ndarray, first: numpy.ndarray, second: numpy.ndarray) -> List[float]:
    """Takes pairs in steps, so that they need no more memory than the sample."""
    step = max(1, len(units))
    found: List[float] = []
    for start in range(0, len(first), step):
        part = slice(start, start + step)
        found += cosines(units[first[part]], units[second[part]]).tolist()
    return found


KEPT = {
    "all": "all layers",
    "top": "the top layer",
    "average": "the mean of the layers",
    "": "one layer, unknown which",
}

STATES = {
    "carry": "each sentence from where the batch before ended",
    "reset": "each sentence from zeros",
    "warm": "each sentence from one state that is kept with the weights",
    "": "unknown",
}
"""What the facts of files mean, for readers."""


def layers_section(described: DescribedLayers, name: str) -> Section:
    """What the file is, what its vectors are like, and which command goes on."""
    blocks: List[Block] = [_facts(described)]
    if described.layers:
        blocks.append(_statistics_table(described))
        pairs = {
            _layer_name(described, place): layer.pairs
            for place, layer in enumerate(described.layers)
        }
        if all(pairs.values()):
            caption = (
                "Cosines of random pairs of vectors of two sentences. The further right a layer's "
                "lie, the more all its vectors point in one direction."
            )
            blocks.append(histogram(caption, "cosine", pairs))
    else:
        blocks.append(Paragraph("The sample holds no vector that could be described."))
    return Section(f"Layers {name}", [*blocks, Paragraph(_way_on(described))])


def _facts(described: DescribedLayers) -> Table:
    facts, num_sentences = described.facts, described.num_sentences
    vectors = "tokens" if facts.pool is None else "sentences"
    facts_told = {
        "file": str(described.path),
        "size": f"{described.num_bytes / 2**20:,.1f} MiB",
        "format": "HDF5, a data set for each sentence",
        "sentences": f"{num_sentences:,}",
        "tokens": _tokens(described),
        "kept": KEPT[facts.kept],
        "vectors of": "tokens" if facts.pool is None else f"sentences: the {facts.pool} of tokens",
        "layers of the biLM": f"{facts.layers}" if facts.kept != "" else "",
        "width": f"{facts.width:,}",
        "numbers": facts.dtype,
        "read": STATES[facts.state],
        "its sentences": _sentences(described),
        "biLM": facts.model or "unknown",
        "export": facts.export or "unknown",
        "sample": f"{described.sampled_vectors:,} {vectors} of {described.sampled_sentences:,} "
        "sentences, drawn at random, the same each time",
    }
    rows = [
        [Cell(title), Cell(printable(text, 1000))] for title, text in facts_told.items() if text
    ]
    return Table("What the file is.", [Column(""), Column("")], rows)


def _sentences(described: DescribedLayers) -> str:
    if described.facts.keys == "sentences":
        return "are its keys"
    return "are in it" if described.knows_sentences else "are not in it"


def _tokens(described: DescribedLayers) -> str:
    """How many there are, if the sample or its mean tells."""
    if described.facts.pool is not None or not described.sampled_sentences:
        return ""
    if described.sampled_sentences == described.num_sentences:
        return f"{described.sampled_tokens:,}"
    mean = described.sampled_tokens / described.sampled_sentences
    return f"about {mean * described.num_sentences:,.0f}, by the mean of the sample"


def _layer_name(described: DescribedLayers, place: int) -> str:
    if described.facts.kept != "all":
        return KEPT[described.facts.kept]
    return f"layer {place}"


def _statistics_table(described: DescribedLayers) -> Table:
    columns = [
        Column("layer"),
        Column("mean norm", is_number=True),
        Column("± deviation", is_number=True),
        Column("cosine: layer below", is_number=True),
        Column("cosine: layer 0", is_number=True),
        Column("cosine: random pairs", is_number=True),
    ]
    rows = [
        [
            Cell(_layer_name(described, place)),
            *(
                metric_cell("", number)
                for number in (
                    *(layer.norm, layer.norm_deviation),
                    *(layer.cosine_below, layer.cosine_lowest, layer.anisotropy),
                )
            ),
        ]
        for place, layer in enumerate(described.layers)
    ]
    caption = (
        "What the sample's vectors are like: their norms, the mean cosine of a vector with that of "
        f"the same token in other layers, and that of {NUM_PAIRS:,} random pairs of two sentences "
        "(anisotropy: 0 if vectors point in all directions)."
    )
    if described.facts.kept == "all":
        caption += " Layer 0 is the token layer."
    if described.left_out:
        caption += f" {described.left_out:,} vectors with infinity or NaN are left out."
    return Table(caption, columns, rows)


def _way_on(described: DescribedLayers) -> str:
    command = f"allennlp elmo-explore {described.path} -o layers.html"
    if described.facts.pool is not None:
        return (
            "`allennlp elmo-explore` shows neighbours of tokens, which this file has pooled to one "
            "vector a sentence: export the text without --pool for it."
        )
    if not described.knows_sentences:
        return (
            "`allennlp elmo-explore` shows neighbours of words, but this file doesn't know its "
            "sentences: export the text without --forget-sentences for it."
        )
    return printable(f"Neighbours of its words, layer by layer, are shown by: {command}", 1000)
