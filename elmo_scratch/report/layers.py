"""The part of a report on a file of layers."""

from typing import List

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
from elmo_scratch.report.layer_statistics import NUM_PAIRS, DescribedLayers
from elmo_scratch.report.untrusted import printable

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
        blocks.append(_statistics(described))
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


def _statistics(described: DescribedLayers) -> Table:
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
