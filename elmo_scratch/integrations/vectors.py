"""The vectors of sentences: a model by its name, one of its layers, and one vector a sentence."""

from os import PathLike
from typing import Callable, Dict, Iterable, Iterator, Optional, Sequence, Union

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.spelling import split_ragged_batch
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export.model_source import ModelSource
from elmo_scratch.export.pipeline import blocks_of_batches
from elmo_scratch.export.plan import KEPT, POOLS, ExportSettings
from elmo_scratch.export.text import Sentence

FilePath = Union[str, PathLike]

Model = Union[FilePath, Sequence[FilePath]]
"""A model that one name stands for, such as an archive; or official files, options and weights."""

MIXES = {"mix": KEPT["average"], "top": KEPT["top"]}
"""
The layers that have names; all have numbers. `"mix"` is the average: a biLM's files hold no weights
for a mix, which only a task can learn.
"""

Choice = Callable[[numpy.ndarray], numpy.ndarray]


def read_model(model: Model, *, cuda_device: int, matmul_dtype: str) -> SentenceLayers:
    """
    Reads a biLM that starts each sentence from zeros. Raises `ConfigurationError` if `model` names
    none, or it or the device can't be used.
    """
    files = [model] if isinstance(model, (str, PathLike)) else model
    is_named = isinstance(files, (list, tuple)) and len(files) in (1, 2)
    if not is_named or not all(isinstance(file, (str, PathLike)) for file in files):
        raise ConfigurationError(
            "expected `model` to be a name or a path, such as that of an archive (model.tar.gz), "
            f"or the two paths of options.json and weights.hdf5, but got {model!r}"
        )
    *options_file, weight_file = map(str, files)
    return ModelSource(
        options_file[0] if options_file else None,
        weight_file,
        state="reset",
        cuda_device=cuda_device,
        matmul_dtype=matmul_dtype,
    ).read()


def check_choice(layer: Union[str, int], pool: str) -> None:
    """Raises `ValueError` if no model can have such a layer, or there is no such pooling."""
    number = str(layer)
    if layer not in MIXES and not (number.isascii() and number.isdigit()):
        raise ValueError(f'expected `layer` to be "mix", "top" or a number, but got {layer!r}')
    if pool not in POOLS:
        raise ValueError(f"expected `pool` to be one of {', '.join(POOLS)}, but got {pool!r}")


def chosen_layer(layer: Union[str, int], num_layers: int) -> Choice:
    """
    Returns a function of a sentence's layers, shape `(layers, tokens, width)`, to vectors of shape
    `(tokens, width)`. `layer` is `"mix"`, `"top"`, or the number of a layer: 0, or `"0"`, is that
    of the tokens. Raises `ValueError` if there is no such layer among `num_layers`.
    """
    if isinstance(layer, str) and layer in MIXES:
        return MIXES[layer]
    number = int(layer)
    if number >= num_layers:
        raise ValueError(
            f'expected `layer` to be "mix", "top" or a number from 0 to {num_layers - 1}, which '
            f"this model has, but got {layer!r}"
        )
    return lambda layers: layers[number]


def pooled(vectors: numpy.ndarray, pool: str) -> numpy.ndarray:
    """
    Shape `(tokens, width)` → `(width,)`, by `"mean"` or `"max"` over the tokens; zeros if there is
    no token.
    """
    return POOLS[pool](vectors) if len(vectors) else numpy.zeros(vectors.shape[-1], vectors.dtype)


def sentence_vectors(
    layers: SentenceLayers,
    sentences: Iterable[Sequence[str]],
    layer: Union[str, int],
    pool: Optional[str] = None,
) -> Iterator[numpy.ndarray]:
    """
    Embeds any number of sentences, in the batches of `allennlp elmo`, which hold sentences of like
    lengths. Memory holds the words and vectors of some 2,000 sentences.

    # Parameters

    layers : `SentenceLayers`
        The biLM. Its state is `"reset"`.
    sentences : `Iterable[Sequence[str]]`
        The words of each sentence.
    layer : `Union[str, int]`
        See `chosen_layer`.
    pool : `str`, optional (default = `None`)
        See `pooled`. `None` yields the vector of each word.

    # Returns

    `Iterator[numpy.ndarray]`
        For each sentence, float32, shape `(words, width)`; with `pool`, `(width,)`.

    # Raises

    ValueError
        If there is no such layer, or a sentence is not a sequence of words.
    """
    choose = chosen_layer(layer, layers.num_layers)
    numbered = (Sentence(number, "", list(words)) for number, words in enumerate(sentences))
    for block in blocks_of_batches(numbered, ExportSettings(), is_carried=False):
        found: Dict[int, numpy.ndarray] = {}
        for batch in block:
            for rows in split_ragged_batch([len(sentence.tokens) for sentence in batch]):
                spelled = layers.spell([sentence.tokens for sentence in batch[rows]])
                read = layers.read(spelled).numpy()  # (layers, batch, tokens, width)
                for row, sentence in enumerate(batch[rows]):
                    vectors = choose(read[:, row, : len(sentence.tokens)])
                    # A view would keep the other layers, and the whole batch, in memory.
                    found[sentence.number] = pooled(vectors, pool) if pool else vectors.copy()
        yield from (found[number] for number in sorted(found))
