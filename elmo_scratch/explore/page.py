"""
A page of layers for a browser: one file, which asks for no other. What it holds is a JSON object;
`page.js` is its only reader. TensorBoard's embedding projector gets files of its own.
"""

import base64
import hashlib
from base64 import b64encode
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.explore.neighbours import (
    neighbours_of_all,
    num_tiles,
    occurrences,
    plane_of,
    spread,
)
from elmo_scratch.explore.tokens import ExportedTokens
from elmo_scratch.files.atomic import atomic_writes

MAX_SENTENCES = 2000
"""The sentences of a page, unless others are asked for."""

MAX_TOKENS = 2**16
"""The tokens of a page: their numbers take two bytes, and the page some 8 MB."""

MAX_OCCURRENCES = 64
"""The occurrences of a word that are compared with each other."""

FEWEST_FOR_A_MAP = 3

COSINE_STEPS, PAIR_STEPS, MAP_STEPS = 1000, 100, 127
"""Steps from 0 to 1 in which the page has cosines, those of two occurrences, and coordinates."""


def num_steps(tokens: ExportedTokens) -> int:
    """How many steps of equal work `page_data` tells."""
    forms = int(tokens.forms().max(initial=-1)) + 1
    sizes = (forms if tokens.is_static(layer) else len(tokens) for layer in _layers(tokens))
    return sum(map(num_tiles, sizes))


def page_data(
    tokens: ExportedTokens,
    k: int,
    labels: Optional[Sequence[str]],
    done: Callable[[int], object],
) -> Dict[str, Any]:
    """
    Computes the neighbours of all tokens, and the cosines and the maps of occurrences.

    # Parameters

    tokens : `ExportedTokens`
        At most `MAX_TOKENS` tokens.
    k : `int`
        How many neighbours a token gets in each layer.
    labels : `Optional[Sequence[str]]`
        A label for each sentence.
    done : `Callable[[int], object]`
        Is told 1 after each of `num_steps` steps.

    # Returns

    `Dict[str, Any]`
        Text as it is, numbers by `packed`.

    # Raises

    ConfigurationError
        If there are too many tokens, or the file is damaged.
    """
    if len(tokens) > MAX_TOKENS:
        raise ConfigurationError(
            f"{tokens.name}: a page has room for {MAX_TOKENS} tokens, but the first line alone has "
            f"{len(tokens)}. Export the text with one sentence a line."
        )
    forms = tokens.forms()
    _, first_rows = numpy.unique(forms, return_index=True)
    by_word = {word: rows for word, rows in occurrences(tokens).items() if len(rows) > 1}
    groups = [spread(rows, MAX_OCCURRENCES) for rows in by_word.values()]
    group_of_form = numpy.full(len(first_rows), -1, "int32")
    for number, rows in enumerate(by_word.values()):
        group_of_form[forms[rows]] = number
    layers = [
        _static_layer(tokens, layer, first_rows, k, done)
        if tokens.is_static(layer)
        else _layer(tokens, layer, groups, k, done)
        for layer in _layers(tokens)
    ]
    return {
        "sentences": tokens.sentences,
        "numbers": packed(numpy.array(tokens.numbers, "uint32")),
        "labels": None if labels is None else _labels(labels),
        "layers": layers,
        "groups": {
            "of_form": packed(group_of_form),
            "totals": packed(numpy.array([len(rows) for rows in by_word.values()], "uint32")),
            "sizes": packed(numpy.array([len(rows) for rows in groups], "uint8")),
            "rows": packed(numpy.array([row for rows in groups for row in rows], "uint16")),
        },
        "steps": {"cosine": COSINE_STEPS, "pair": PAIR_STEPS, "map": MAP_STEPS},
    }


def packed(numbers: numpy.ndarray) -> List[str]:
    """Numbers as the name of their type and, in base64, their bytes, the lowest first."""
    kind = numbers.dtype.newbyteorder("<")
    return [numbers.dtype.name, base64.b64encode(numbers.astype(kind).tobytes()).decode()]


def _layers(tokens: ExportedTokens) -> range:
    return range(tokens.num_layers)


def _layer(
    tokens: ExportedTokens,
    layer: int,
    groups: Sequence[Sequence[int]],
    k: int,
    done: Callable[[int], object],
) -> Dict[str, Any]:
    """A layer whose vectors depend on the sentence: each row has its own neighbours."""
    units = numpy.empty((len(tokens), tokens.width), "float32")
    for first, block in tokens.blocks([layer]):
        units[first : first + block.shape[1]] = block[0]
    pairs: List[numpy.ndarray] = [numpy.empty(0)]
    points: List[numpy.ndarray] = [numpy.empty(0)]
    shares: List[float] = []
    for rows in groups:
        vectors = units[rows].astype("float64")
        products = vectors @ vectors.T
        pairs.append(products[numpy.triu_indices(len(rows), 1)])
        if len(rows) >= FEWEST_FOR_A_MAP:
            plane = plane_of(products)
            # Both axes have one scale, so that distances can be compared.
            low, high = plane.points.min(axis=0), plane.points.max(axis=0)
            scale = (high - low).max() / 2 or 1.0
            points.append(((plane.points - (low + high) / 2) / scale).ravel())
            shares.append(plane.share)
    return {
        "name": tokens.layer_name(layer),
        "is_static": False,
        **_neighbours(units, numpy.arange(len(tokens)), k, done),
        "pairs": packed(_quantised(numpy.concatenate(pairs), PAIR_STEPS, "int8")),
        "points": packed(_quantised(numpy.concatenate(points), MAP_STEPS, "int8")),
        "shares": packed(_quantised(numpy.array(shares), 100, "uint8")),
    }


def _static_layer(
    tokens: ExportedTokens,
    layer: int,
    first_rows: numpy.ndarray,
    k: int,
    done: Callable[[int], object],
) -> Dict[str, Any]:
    """The layer in which all tokens of a word are one: each word has other words as neighbours."""
    units = tokens.unit_vectors(first_rows.tolist(), [layer])[0]
    return {
        "name": tokens.layer_name(layer),
        "is_static": True,
        **_neighbours(units, first_rows, k, done),
    }


def _neighbours(
    units: numpy.ndarray, rows: numpy.ndarray, k: int, done: Callable[[int], object]
) -> Dict[str, Any]:
    """The neighbours of vectors, which stand for `rows`."""
    found, cosines = neighbours_of_all(units, k, done)
    return {
        "k": found.shape[1],
        "rows": packed(rows[found].ravel().astype("uint16")),
        "cosines": packed(_quantised(cosines.ravel(), COSINE_STEPS, "int16")),
    }


def _quantised(numbers: numpy.ndarray, steps: int, kind: str) -> numpy.ndarray:
    return (numbers * steps).round().astype(kind)


def _labels(labels: Sequence[str]) -> Dict[str, Any]:
    """The labels, the most frequent first, and that of each sentence."""
    places = {name: place for place, (name, _) in enumerate(Counter(labels).most_common())}
    return {
        "names": list(places),
        "of": packed(numpy.array([places[label] for label in labels], "uint32")),
    }


FOLDER = Path(__file__).parent


def layer_page(
    tokens: ExportedTokens,
    *,
    k: int,
    labels: Optional[Sequence[str]] = None,
    done: Callable[[int], object] = lambda steps: None,
) -> bytes:
    """
    Makes the page, in UTF-8. The same file gives the same bytes.

    The browser is told to run no other script than the page's own and to load nothing. Sentences
    and labels reach the page as text: neither can be taken for a tag.

    # Parameters

    tokens : `ExportedTokens`
        The tokens, at most `MAX_TOKENS`.
    k : `int`
        How many neighbours a token gets in each layer.
    labels : `Sequence[str]`, optional (default = none)
        A label for each sentence, by which maps are coloured.
    done : `Callable[[int], object]`, optional (default = nothing)
        Is told 1 after each of `num_steps` steps.

    # Raises

    ConfigurationError
        If there are too many tokens, or the file is damaged.
    """
    # Only pages need it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    style, script = (
        (FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
    )
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    page = environment.get_template("page.html").render(
        tokens=tokens,
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
        data=page_data(tokens, k, labels, done),
    )
    # A file's name may hold bytes that are no text.
    return page.encode("utf-8", "replace")


def _digest(text: str) -> str:
    """By which a content security policy knows a script or a style."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()


VECTORS, METADATA, CONFIG = "vectors.tsv", "metadata.tsv", "projector_config.pbtxt"


def write_projector(
    tokens: ExportedTokens,
    layer: int,
    folder: Path,
    *,
    labels: Optional[Sequence[str]] = None,
    done: Callable[[int], object] = lambda rows: None,
) -> None:
    """
    Writes the unit vectors of a layer, a token a line, what each token is, and the config by which
    `tensorboard --logdir FOLDER` shows them. All three files appear, or none.

    # Parameters

    tokens : `ExportedTokens`
        The tokens.
    layer : `int`
        The number of the layer.
    folder : `Path`
        Where to write. The folder above must exist.
    labels : `Sequence[str]`, optional (default = none)
        A label for each sentence.
    done : `Callable[[int], object]`, optional (default = nothing)
        Is told how many more tokens have been written.

    # Raises

    ConfigurationError
        If the file of layers is damaged.
    IndexError
        If there is no such layer.
    OSError
        If the disk is full.
    """
    tokens.check_layer(layer)
    with atomic_writes(folder, [VECTORS, METADATA, CONFIG]) as written:
        with (written / VECTORS).open("w", encoding="utf-8") as file:
            for _, block in tokens.blocks([layer]):
                numpy.savetxt(file, block[0], fmt="%.6g", delimiter="\t")
                done(block.shape[1])
        with (written / METADATA).open("w", encoding="utf-8", errors="replace") as file:
            print("word", "sentence", "position", "label", "text", sep="\t", file=file)
            for place, sentence in enumerate(tokens.sentences):
                # A label may hold tabs; words are what stands between white space.
                label = "" if labels is None else " ".join(labels[place].split())
                number = tokens.numbers[place]
                for position, word in enumerate(sentence.split()):
                    print(word, number, position, label, sentence, sep="\t", file=file)
        (written / CONFIG).write_text(
            f'embeddings {{\n  tensor_name: "{tokens.layer_name(layer)}"\n'
            f'  tensor_path: "{VECTORS}"\n  metadata_path: "{METADATA}"\n}}\n',
            encoding="utf-8",
        )
