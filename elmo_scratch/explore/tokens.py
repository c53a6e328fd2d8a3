"""
The tokens of a file of layers in their order, their vectors, read block by block, and the labels
of their sentences.
"""

import re
from itertools import chain
from os import PathLike
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.lines import text_lines
from elmo_scratch.interop import LayerFile

BLOCK_NUMBERS = 2**22
"""About how many numbers are read at once: 16 MiB of float32."""

LINE_NUMBER = re.compile("0|[1-9][0-9]{0,17}")

ONE_LAYER = {"top": "top layer", "average": "mean of the layers", "": "one layer"}
"""The name of the layer of a file that keeps only one."""


class Token(NamedTuple):
    """
    A token: the number of its sentence, its position in it, and itself.

    The number is that of the line, from 0. Where a file has sentences for keys, it is the place of
    the sentence in the file.
    """

    sentence: int
    position: int
    word: str


class ExportedTokens:
    """
    All tokens of a file of layers, in the order of its lines. A token's place in this order is its
    row. Memory holds the sentences, not the vectors.

    A line that a later line repeats is left out: the file knows only the last one's words.

    `sentences` has the sentences, their words between single spaces, and `numbers` their numbers.
    The whole file knows `num_known` sentences, and the text has at least `num_lines` lines.

    # Parameters

    layer_file : `LayerFile`
        The file, open as long as vectors are read.
    max_sentences, max_tokens : `int`, optional (default = all)
        Only the first sentences, as many as keep both limits, but at least one.

    # Raises

    ConfigurationError
        If the file doesn't know its sentences, has no vectors of tokens, or its map makes no sense.
    """

    def __init__(
        self,
        layer_file: LayerFile,
        *,
        max_sentences: Optional[int] = None,
        max_tokens: Optional[int] = None,
    ) -> None:
        self._file = layer_file
        sentences = [
            (_number(layer_file, key, place), " ".join(tokens), key)
            for place, (tokens, key) in enumerate(layer_file.token_sentences())
        ]
        if not sentences:
            raise ConfigurationError(f"{layer_file.path}: expected sentences, but there are none")
        sentences.sort(key=lambda sentence: sentence[0])
        if len({number for number, _, _ in sentences}) < len(sentences):
            raise ConfigurationError(
                f"{layer_file.path}: `sentence_to_index` gives two sentences the same key. Export "
                "the text again."
            )
        self.num_known, self.num_lines = len(sentences), sentences[-1][0] + 1
        starts = numpy.cumsum([0, *(len(sentence.split()) for _, sentence, _ in sentences)])
        if max_tokens is not None:
            within = int(numpy.searchsorted(starts, max_tokens, "right")) - 1
            max_sentences = min(within, within if max_sentences is None else max_sentences)
        if max_sentences is not None:
            del sentences[max(1, max_sentences) :]
        self.numbers = [number for number, _, _ in sentences]
        self.sentences = [sentence for _, sentence, _ in sentences]
        self._keys = [key for _, _, key in sentences]
        self._places = {number: place for place, number in enumerate(self.numbers)}
        self._starts = starts[: len(sentences) + 1]

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._file.path.name

    @property
    def has_lines(self) -> bool:
        """Whether the numbers of sentences are those of lines."""
        return self._file.has_index

    @property
    def num_repeated(self) -> int:
        """How many lines of the file are left out because a later one repeats them."""
        return len(self._file) - self.num_known

    @property
    def num_layers(self) -> int:
        facts = self._file.facts
        return facts.layers if facts.kept == "all" else 1

    @property
    def width(self) -> int:
        return self._file.facts.width

    def is_static(self, layer: int) -> bool:
        """Whether a token's vector in the layer depends on nothing but its word."""
        return self._file.facts.kept == "all" and layer == 0

    def layer_name(self, layer: int) -> str:
        """The name of a layer for people."""
        if self._file.facts.kept != "all":
            return ONE_LAYER[self._file.facts.kept]
        return "static layer 0" if layer == 0 else f"layer {layer}"

    def words(self) -> Iterator[str]:
        """Yields the word of each row."""
        return chain.from_iterable(map(str.split, self.sentences))

    def forms(self) -> numpy.ndarray:
        """
        Returns the number of each row's word, shape `(rows,)`; words are numbered from 0 in the
        order of their first occurrences.
        """
        numbers: Dict[str, int] = {}
        return numpy.array([numbers.setdefault(word, len(numbers)) for word in self.words()])

    def token(self, row: int) -> Token:
        """Returns the token of a row."""
        place, position = self._place(row)
        return Token(self.numbers[place], position, self.sentences[place].split()[position])

    def context(self, row: int) -> Tuple[List[str], int]:
        """Returns the words of a row's sentence, and the row's position among them."""
        place, position = self._place(row)
        return self.sentences[place].split(), position

    def row(self, sentence: Union[int, str], position: int) -> int:
        """
        Returns the row of a token by its sentence, a number or itself, and its position from 0.
        Raises `IndexError` or `KeyError` if there is none.
        """
        if isinstance(sentence, str):
            spaced = " ".join(sentence.split())
            if spaced not in self.sentences:
                raise KeyError(f"{self._file.path} is not known to hold the sentence {sentence!r}")
            place = self.sentences.index(spaced)
        elif sentence in self._places:
            place = self._places[sentence]
        else:
            raise IndexError(
                f"{self._file.path}: expected the number of a sentence, from {self.numbers[0]} to "
                f"{self.numbers[-1]}, but got {sentence}. A line that a later one repeats counts "
                "there only."
            )
        num_tokens = int(self._starts[place + 1] - self._starts[place])
        if not 0 <= position < num_tokens:
            raise IndexError(
                f"{self._file.path}: sentence {self.numbers[place]} has the positions 0 to "
                f"{num_tokens - 1}, but got {position}"
            )
        return int(self._starts[place]) + position

    def check_layer(self, layer: int) -> None:
        """Raises `IndexError` if there is no such layer."""
        if not 0 <= layer < self.num_layers:
            raise IndexError(
                f"{self._file.path}: expected a layer from 0 to {self.num_layers - 1}, but got "
                f"{layer}"
            )

    def blocks(self, layers: Sequence[int]) -> Iterator[Tuple[int, numpy.ndarray]]:
        """
        Yields the rows block by block: the first row of a block, and the unit vectors of its rows
        in `layers`, float32 of shape `(layers, rows, width)`. Raises `ConfigurationError` if the
        file is damaged.
        """
        first, pending, size = 0, [], 0
        for place in range(len(self.sentences)):
            pending.append(self._sentence(place, layers))
            size += pending[-1].size
            if size >= BLOCK_NUMBERS or place == len(self.sentences) - 1:
                block = numpy.concatenate(pending, axis=1)
                yield first, block
                first, pending, size = first + block.shape[1], [], 0

    def unit_vectors(self, rows: Sequence[int], layers: Sequence[int]) -> numpy.ndarray:
        """
        Returns the unit vectors of some rows, float32 of shape `(layers, rows, width)`. Raises
        `ConfigurationError` if the file is damaged.
        """
        read: Dict[int, numpy.ndarray] = {}
        result = numpy.empty((len(layers), len(rows), self.width), "float32")
        for number, row in enumerate(rows):
            place, position = self._place(row)
            if place not in read:
                read = {place: self._sentence(place, layers)}
            result[:, number] = read[place][:, position]
        return result

    def _place(self, row: int) -> Tuple[int, int]:
        """The place of a row's sentence, and the row's position in it."""
        place = int(numpy.searchsorted(self._starts, row, "right")) - 1
        return place, row - int(self._starts[place])

    def _sentence(self, place: int, layers: Sequence[int]) -> numpy.ndarray:
        """The unit vectors of a sentence, shape `(layers, tokens, width)`."""
        num_tokens = int(self._starts[place + 1] - self._starts[place])
        vectors = self._file.read_tokens(self._keys[place], num_tokens)[list(layers)]
        with numpy.errstate(over="ignore"):
            vectors = vectors.astype("float32", copy=False)
        if not numpy.isfinite(vectors).all():
            raise ConfigurationError(
                f"{self._file.path}: expected numbers, but the vectors of {self._keys[place]!r} "
                "hold infinity or NaN. Export the text again."
            )
        return unit_vectors(vectors)


def unit_vectors(vectors: numpy.ndarray) -> numpy.ndarray:
    """
    Returns vectors of length 1 in float32; those of zeros stay as they are. Shape `(..., width)`.
    """
    wide = vectors.astype("float64")
    lengths = numpy.sqrt((wide * wide).sum(axis=-1, keepdims=True))
    return (wide / numpy.where(lengths == 0, 1, lengths)).astype("float32")


def cosines(one: numpy.ndarray, other: numpy.ndarray) -> numpy.ndarray:
    """
    Returns the cosines of unit vectors of shape `(..., width)`, in float64, shape `(...)`. Each
    depends on its two vectors alone: a matrix product's may change with the other rows' number.
    """
    return numpy.multiply(one, other, dtype="float64").sum(axis=-1).clip(-1, 1)


def _number(layer_file: LayerFile, key: str, place: int) -> int:
    """The number of a sentence, by its key or, where keys are sentences, its place in the file."""
    if not layer_file.has_index:
        return place
    if not LINE_NUMBER.fullmatch(key):
        raise ConfigurationError(
            f"{layer_file.path}: expected `sentence_to_index` to name numbers of lines, but got "
            f"{key!r}"
        )
    return int(key)


def read_labels(
    path: Union[str, PathLike], tokens: ExportedTokens, num_lines: Optional[int] = None
) -> List[str]:
    """
    Reads the labels of the sentences of `tokens`, in their order; a blank line is a label too.

    # Parameters

    path : `Union[str, PathLike]`
        A text file with as many lines as the text that was exported.
    tokens : `ExportedTokens`
        The sentences, numbered by the lines of that text.
    num_lines : `int`, optional (default = up to the last sentence of the file of layers)
        How many lines the text has.

    # Raises

    ConfigurationError
        If the file can't be read, has another number of lines, or sentences aren't numbered.
    """
    if not tokens.has_lines:
        raise ConfigurationError(
            f"{tokens.name}: labels are those of lines, but the keys of this file are sentences, "
            "whose order it doesn't know. Export the text without --use-sentence-keys."
        )
    labels = [line.strip() for line in text_lines(path)]
    expected = tokens.num_lines if num_lines is None else num_lines
    if len(labels) != expected:
        raise ConfigurationError(
            f"{path}: expected a label for each of the {expected} lines of the text, but there are "
            f"{len(labels)}. Write one a line, blank where there is none."
        )
    return [labels[number] for number in tokens.numbers]
