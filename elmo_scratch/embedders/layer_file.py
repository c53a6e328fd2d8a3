"""ELMo from a file that holds a frozen biLM's layers of all texts: a task only mixes them."""

import hashlib
import os
from abc import ABC, abstractmethod
from array import array
from collections import OrderedDict
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy
import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.data import Token, TokenIndexer, Vocabulary
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_scratch.data.sentence_forms import spaced_line
from elmo_scratch.embedders.output_encoder import mixed_vectors
from elmo_scratch.files.identity import Stamp, stamp_of
from elmo_scratch.files.machine import machine_memory
from elmo_scratch.interop import LayerFile
from elmo_scratch.interop.layer_files.sentence_map import SentenceIndex
from elmo_scratch.modules.mixes import LayerMix, TrainableMix

SHOWN = 300
"""Characters of a sentence in an error message."""

TOKEN_BITS, TEXT_BITS = 40, 22
"""
The lower bits of a number are the token's place in its file; the higher ones identify the text. A
signed 64-bit integer has room for both.
"""


class TokenPlaces(NamedTuple):
    """
    The places of tokens: of their sentences in the file, and their own in the sentences. Shape
    `(n,)` each.
    """

    sentences: numpy.ndarray
    offsets: numpy.ndarray


class TokenNumbers:
    """
    Numbers the tokens of all sentences of a file of layers, one sentence after the other. Numbers
    of different texts differ, so that an embedder with another file than the indexer notices.
    Raises `ConfigurationError` if the file can't be read, has no vectors of tokens, or no index.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        counts, digest = array("q"), hashlib.blake2b(digest_size=8)
        with LayerFile(file) as layer_file:
            self._index = SentenceIndex(_counted(layer_file, counts, digest))
        # `_starts[place]` is the number of tokens before the sentence at that place.
        self._starts = numpy.concatenate([[0], numpy.cumsum(counts, dtype="int64")])
        text = int.from_bytes(digest.digest(), "big") % 2**TEXT_BITS
        self.before_first = text << TOKEN_BITS
        """One less than the number of the first token."""

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def num_sentences(self) -> int:
        return len(self._index)

    def of(self, words: Sequence[str]) -> Sequence[int]:
        """
        Returns the numbers of a sentence's tokens. Raises `ConfigurationError` if the file lacks
        it.
        """
        place = self._index.find(spaced_line(words)) if words else None
        if words and (place is None or self.num_tokens(place) != len(words)):
            sentence = " ".join(words)
            shown = sentence if len(sentence) <= SHOWN else f"{sentence[:SHOWN]}..."
            raise ConfigurationError(
                f"{self.file}: expected the layers of the {len(words)} tokens {shown!r}, but there "
                "are none. Export every text that the task reads, training, validation and test "
                "data, one a line, cut into the same tokens, with spaces between them."
            )
        start = self.before_first + (0 if place is None else int(self._starts[place]))
        return range(start + 1, start + 1 + len(words))

    def rows(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """
        Returns how many tokens come before each token; both of shape `(n,)`. Raises
        `ConfigurationError` if a number is no token of this text.
        """
        rows = numbers - (self.before_first + 1)
        if rows.size and not 0 <= rows.min() <= rows.max() < len(self):
            raise ConfigurationError(
                f"{self.file}: expected the numbers of tokens of this file's text, but those of "
                "another one came. Name the same file for the indexer and the embedder: the `file` "
                "in the `token_indexers` of the reader and that in the `token_embedders` of the "
                "model."
            )
        return rows

    def places(self, numbers: numpy.ndarray) -> TokenPlaces:
        """
        Returns the places of tokens, given their numbers of shape `(n,)`. Raises as `rows` does.
        """
        rows = self.rows(numbers)
        sentences = numpy.searchsorted(self._starts, rows, "right") - 1
        return TokenPlaces(sentences, rows - self._starts[sentences])

    def key(self, place: int) -> str:
        """Returns the name of the data set of the sentence at a place."""
        return self._index.key(place)

    def num_tokens(self, place: int) -> int:
        return int(self._starts[place + 1] - self._starts[place])


def shared_token_numbers(file: str, stamp: Optional[Stamp] = None) -> TokenNumbers:
    """
    Returns the numbers of a file; an indexer, an embedder and all fields share them. Raises
    `ConfigurationError` as `TokenNumbers` does, or if the file is missing or has another `stamp`.
    """
    if not Path(file).exists():
        raise ConfigurationError(
            f"{file}: there is no such file of layers. A model that was trained on layers from a "
            "file needs them whenever it is loaded, those of the new texts among them: write them "
            "with `allennlp elmo`, or name another file by --overrides."
        )
    found = stamp_of(Path(file))
    if stamp not in (None, found):
        raise ConfigurationError(
            f"{file}: another file took the place of the one that the model was loaded with, and "
            "its numbers mean other tokens. Load the model again."
        )
    return _token_numbers(file, os.path.abspath(file), found)


@lru_cache(maxsize=8)
def _token_numbers(file: str, *identity: object) -> TokenNumbers:
    """Caches the numbers by path and stamp."""
    return TokenNumbers(file)


def _counted(
    layer_file: LayerFile, counts: array, digest: "hashlib.blake2b"
) -> Iterator[Tuple[str, str]]:
    """
    Yields each sentence, its tokens between single spaces, with its key. Appends its number of
    tokens to `counts` and adds it to the digest of the text.
    """
    for tokens, key in layer_file.token_sentences():
        counts.append(len(tokens))
        spaced = " ".join(tokens)
        digest.update(spaced.encode("utf-8", "surrogatepass") + b"\n")
        yield spaced, key


KEPT_BYTES = 2**28
"""How much memory the cache of recently read sentences may take."""


class TokenLayers(ABC):
    """The layers of all tokens of a file. Abstract."""

    @abstractmethod
    def of(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """
        Returns the layers of tokens, given at least one number, of shape `(n,)`. The result has the
        shape `(layers, n, width)` and the file's type; `layers` is 1 where the file keeps one
        layer. Raises `ConfigurationError` if there is no such token, or the file can't be read.
        """


class LayersOnDisk(TokenLayers):
    """Reads sentences when they are needed, and caches the last ones."""

    def __init__(self, layer_file: LayerFile, numbers: TokenNumbers) -> None:
        self._layer_file = layer_file
        self._numbers = numbers
        self._last: OrderedDict[int, numpy.ndarray] = OrderedDict()
        self._last_bytes = 0

    def of(self, numbers: numpy.ndarray) -> numpy.ndarray:
        places = self._numbers.places(numbers)
        distinct, rows = numpy.unique(places.sentences, return_inverse=True)
        sentences = [self._sentence(int(place)) for place in distinct]
        starts = numpy.cumsum([0, *(sentence.shape[1] for sentence in sentences)])
        together = numpy.concatenate(sentences, axis=1)  # (layers, tokens, width)
        return together[:, starts[rows] + places.offsets]

    def _sentence(self, place: int) -> numpy.ndarray:
        """Returns the layers of a sentence, shape `(layers, tokens, width)`."""
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
    Reads the whole file once. Raises `ConfigurationError` if it doesn't fit into memory or can't be
    read.
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
        return self._layers[:, self._numbers.rows(numbers)]


def _read(layer_file: LayerFile, numbers: TokenNumbers, place: int) -> numpy.ndarray:
    """Reads the layers of the sentence at a place, shape `(layers, tokens, width)`."""
    return layer_file.read_tokens(numbers.key(place), numbers.num_tokens(place))


@TokenIndexer.register("elmo_scratch_layer_file")
class LayerFileIndexer(TokenIndexer):
    """
    Gives each token the number that a file of layers has for it; files of different texts have
    different numbers. The tokens of a text, joined by spaces, must be a sentence of the file. No
    vocabulary is needed.

    Registered as a `TokenIndexer` with name "elmo_scratch_layer_file".

    # Parameters

    file : `str`
        The file, as `allennlp elmo` writes it.
    token_min_padding_length : `int`, optional (default = `0`)
        How many numbers each text is padded to at least.

    # Raises

    ConfigurationError
        If the file can't be read, has no vectors of tokens or no index of its sentences; later, if
        a text is not in it, or another file took its place.
    """

    def __init__(self, file: str, *, token_min_padding_length: int = 0) -> None:
        super().__init__(token_min_padding_length)
        self.file = file
        # Forked processes inherit the numbers and don't read the file again.
        shared_token_numbers(file)
        self._stamp = stamp_of(Path(file))

    def count_vocab_items(self, token: Token, counter: Dict[str, Dict[str, int]]) -> None:
        """Counts nothing."""

    def get_empty_token_list(self) -> Dict[str, List[Any]]:
        return {"token_numbers": []}

    def tokens_to_indices(
        self, tokens: List[Token], vocabulary: Vocabulary
    ) -> Dict[str, List[Any]]:
        """
        Returns `token_numbers`: one a token, above 0. Raises `ConfigurationError` if the file lacks
        the text, or another one took its place.
        """
        words = [token.ensure_text() for token in tokens]
        return {"token_numbers": list(shared_token_numbers(self.file, self._stamp).of(words))}


@TokenEmbedder.register("elmo_scratch_layer_file")
class LayerFileEmbedder(TokenEmbedder):
    """
    Mixes the layers that a file holds of each text, so that no biLM runs in training. The vectors
    are those of `elmo_scratch` with a frozen biLM, as it was when the file was written. Its indexer
    is `elmo_scratch_layer_file`, with the same `file`.

    The layers are not saved in the task's archive: wherever it is loaded, a file must hold the
    layers of the new texts.

    Registered as a `TokenEmbedder` with name "elmo_scratch_layer_file".

    # Parameters

    file : `str`
        The file, as `allennlp elmo` writes it.
    mix : `Lazy[LayerMix]`, optional (default = `TrainableMix`)
        Combines the layers. A file with one layer, made by `--top` or `--average`, needs no mix.
    output_mix : `Lazy[LayerMix]`, optional (default = `None`)
        Makes a second vector, as in `elmo_scratch`.
    dropout : `float`, optional (default = `0.0`)
        Share of the mixed vectors that is dropped in training.
    in_memory : `bool`, optional (default = `False`)
        Read the whole file at the start. Otherwise each sentence is read when it is needed.

    # Raises

    ConfigurationError
        If the file can't be read, has no vectors of tokens or no index of its sentences, there is a
        `mix` for one layer, or no room in memory; later, if the file comes from another biLM than
        the one that the task was trained with.

    # Source

    Peters et al. 2018, section 3.2.
    """

    _origin: torch.Tensor

    def __init__(
        self,
        file: str,
        *,
        mix: Optional[Lazy[LayerMix]] = None,
        output_mix: Optional[Lazy[LayerMix]] = None,
        dropout: float = 0.0,
        in_memory: bool = False,
    ) -> None:
        super().__init__()
        self.file = file
        numbers = shared_token_numbers(file)
        layer_file = LayerFile(file)
        self._facts = layer_file.facts
        self._layers: TokenLayers = (
            LayersInMemory(layer_file, numbers) if in_memory else LayersOnDisk(layer_file, numbers)
        )
        self.mix: Optional[LayerMix] = None
        self.output_mix: Optional[LayerMix] = None
        if self._facts.kept == "all":
            sizes = {"num_layers": self._facts.layers, "width": self._facts.width}
            self.mix = (mix or Lazy(TrainableMix)).construct(**sizes)
            self.output_mix = None if output_mix is None else output_mix.construct(**sizes)
        elif mix is not None or output_mix is not None:
            raise ConfigurationError(
                f"{file}: there is nothing to mix, the file holds one layer. Leave out `mix` and "
                "`output_mix`, or export the text with --all."
            )
        self.dropout = torch.nn.Dropout(dropout)
        self.register_buffer("_origin", self._digest())
        self.register_load_state_dict_post_hook(_check_origin)

    def get_output_dim(self) -> int:
        return self._facts.width if self.output_mix is None else 2 * self._facts.width

    def forward(self, token_numbers: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        token_numbers : `torch.Tensor`
            Shape `(batch, tokens)`, or with more axes first: the indexer's numbers, 0 where a row
            has ended.

        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, get_output_dim())`.
        """
        numbers = token_numbers.flatten(0, -2)
        layers = self._read(numbers).to(numbers.device)
        if self.mix is None:
            mixed = self.dropout(layers[0])  # (batch, tokens, width)
        else:
            mixed = mixed_vectors(layers, numbers != 0, self.mix, self.output_mix, self.dropout)
        return mixed.unflatten(0, token_numbers.shape[:-1])

    def _read(self, token_numbers: torch.Tensor) -> torch.Tensor:
        """Returns layers of shape `(layers, batch, tokens, width)`, zero where a row has ended."""
        numbers = token_numbers.cpu().numpy()
        num_layers = self._facts.layers if self._facts.kept == "all" else 1
        layers = numpy.zeros((num_layers, *numbers.shape, self._facts.width), dtype="float32")
        is_token = numbers != 0
        if is_token.any():
            layers[:, is_token] = self._layers.of(numbers[is_token])
        return torch.from_numpy(layers)

    def _digest(self) -> torch.Tensor:
        """
        Returns a digest of the biLM, its state and the layers that are kept; zeros if it isn't
        known.
        """
        digest, facts = bytes(32), self._facts
        if facts.model:
            digest = hashlib.sha256(f"{facts.model} {facts.kept} {facts.state}".encode()).digest()
        return torch.tensor(list(digest), dtype=torch.uint8)


def _check_origin(embedder: LayerFileEmbedder, _: Any) -> None:
    """Refuses weights that were trained with the layers of another biLM."""
    trained, here = embedder._origin.cpu(), embedder._digest()
    if trained.any() and here.any() and not torch.equal(trained, here):
        raise ConfigurationError(
            f"{embedder.file}: expected the layers that the model was trained with, but these come "
            f"from another biLM ({embedder._facts.model}), others of its layers were kept, or "
            "sentences started from another state. Export the text as the one of the training was: "
            "with the same `--weight-file` and `--state`, and where that is warm with the same "
            "`--warm-up-file`."
        )
