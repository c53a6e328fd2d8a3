"""Layers of tokens from a file."""

from abc import ABC, abstractmethod
from collections import OrderedDict

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders.layer_file.token_numbers import TokenNumbers
from elmo_scratch.files.machine import machine_memory
from elmo_scratch.interop import LayerFile

KEPT_BYTES = 2**28
"""What the sentences that were read last may take in memory."""


class TokenLayers(ABC):
    """The layers of all tokens of a file. Abstract."""

    @abstractmethod
    def of(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """
        # Parameters

        numbers : `numpy.ndarray`
            Shape `(n,)`: numbers of tokens, at least one.

        # Returns

        `numpy.ndarray`
            Shape `(layers, n, width)`, in the file's type; where the file keeps one layer, `layers`
            is 1.

        # Raises

        ConfigurationError
            If there is no such token, or the file can't be read.
        """


class LayersOnDisk(TokenLayers):
    """
    Reads sentences when they are needed, and remembers the last ones.

    # Parameters

    layer_file : `LayerFile`
        The file.
    numbers : `TokenNumbers`
        Those of its tokens.
    """

    def __init__(self, layer_file: LayerFile, numbers: TokenNumbers) -> None:
        self._layer_file = layer_file
        self._numbers = numbers
        self._last: OrderedDict[int, numpy.ndarray] = OrderedDict()
        self._last_bytes = 0

    def of(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """As in `TokenLayers`."""
        places = self._numbers.places(numbers)
        distinct, rows = numpy.unique(places.sentences, return_inverse=True)
        sentences = [self._sentence(int(place)) for place in distinct]
        starts = numpy.cumsum([0, *(sentence.shape[1] for sentence in sentences)])
        together = numpy.concatenate(sentences, axis=1)  # (layers, tokens, width)
        return together[:, starts[rows] + places.offsets]

    def _sentence(self, place: int) -> numpy.ndarray:
        """The layers of a sentence, shape `(layers, tokens, width)`."""
        if place in self._last:
            self._last.move_to_end(place)
            return self._last[place]
        layers = _read(self._layer_file, self._numbers, place)
        self._last[place] = layers
        self._last_bytes += layers.nbytes
        while self._last_bytes > KEPT_BYTES:
            self._last_bytes -= self._last.popitem(last=False)[1].nbytes
        return layers


class LayersInMemory(TokenLayers):
    """
    Reads the whole file once.

    # Parameters

    layer_file : `LayerFile`
        The file.
    numbers : `TokenNumbers`
        Those of its tokens.

    # Raises

    ConfigurationError
        If memory has no room for it, or it can't be read.
    """

    def __init__(self, layer_file: LayerFile, numbers: TokenNumbers) -> None:
        self._numbers = numbers
        facts = layer_file.facts
        shape = (facts.layers if facts.kept == "all" else 1, len(numbers), facts.width)
        size = int(numpy.prod(shape, dtype=object)) * numpy.dtype(facts.dtype).itemsize
        if size > machine_memory():
            raise ConfigurationError(
                f"{layer_file.path}: the layers take {size / 2**30:.1f} GiB, but this machine has "
                f"{machine_memory() / 2**30:.1f} GiB of memory. Leave out `in_memory`."
            )
        self._layers = numpy.empty(shape, facts.dtype)
        start = 0
        for place in range(numbers.num_sentences):
            sentence = _read(layer_file, numbers, place)
            self._layers[:, start : start + sentence.shape[1]] = sentence
            start += sentence.shape[1]

    def of(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """As in `TokenLayers`."""
        return self._layers[:, self._numbers.rows(numbers)]


def _read(layer_file: LayerFile, numbers: TokenNumbers, place: int) -> numpy.ndarray:
    """The layers of the sentence at a place, shape `(layers, tokens, width)`."""
    key = numbers.key(place)
    try:
        layers = layer_file.read(key)
    except KeyError:
        raise ConfigurationError(
            f"{layer_file.path}: `sentence_to_index` names the key {key!r}, but it is missing"
        ) from None
    if layers.ndim == 2:
        layers = layers[None]
    if layers.shape[1] != numbers.num_tokens(place):
        raise ConfigurationError(
            f"{layer_file.path}: {key!r} has vectors of {layers.shape[1]} tokens, but its sentence "
            f"has {numbers.num_tokens(place)} between spaces"
        )
    return layers
