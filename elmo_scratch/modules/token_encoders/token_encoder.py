"""
The base class of token encoders, the check of their ids, and an encoder with an embedding per word.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Mapping, NamedTuple, Optional, Tuple

import torch
from allennlp.common import Registrable
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed

from elmo_scratch.kernels import sparse_rows
from elmo_scratch.modules.sequences import add_boundaries

ID_TYPES = (torch.int16, torch.int32, torch.int64)
"""Types that have room for all character ids."""


def check_ids(ids: torch.Tensor, kind: str, num_ids: Optional[int] = None) -> None:
    """
    Raises a `ValueError` unless ids have one of `ID_TYPES`, and are in `range(num_ids)` if that is
    given. `kind` names them in the message.
    """
    if ids.dtype not in ID_TYPES:
        raise ValueError(
            f"expected ids of {kind} of the type int16, int32 or int64, but got {ids.dtype}"
        )
    if num_ids is None or ids.numel() == 0:
        return
    lowest, highest = int(ids.min()), int(ids.max())
    if not 0 <= lowest <= highest < num_ids:
        raise ValueError(
            f"expected ids of {kind} from 0 to {num_ids - 1}, but got ids from {lowest} to "
            f"{highest}"
        )


class EncodedTokens(NamedTuple):
    """
    The token layer of a biLM.

    # Parameters

    vectors : `torch.Tensor`
        Shape `(batch, positions, dim)`.
    mask : `torch.BoolTensor`
        Shape `(batch, positions)`.
    """

    vectors: torch.Tensor
    mask: torch.Tensor


class TokenEncoder(torch.nn.Module, Registrable, ABC):
    """
    Turns the ids of tokens into vectors that don't depend on context, and adds the vectors of the
    sentence boundaries. Abstract.

    # Parameters

    dim : `int`
        The size of a vector.

    # Raises

    ValueError
        If `dim` is below 1.
    """

    reads_characters: ClassVar[bool]
    """Whether a token is given by the ids of its characters."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"expected `dim` of 1 or more, but got {dim}")
        self.dim = dim

    @abstractmethod
    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> EncodedTokens:
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(batch, tokens)`, or `(batch, tokens, characters)` for encoders of characters.
        mask : `torch.BoolTensor`
            Shape `(batch, tokens)`; real tokens come first in each row.

        # Returns

        `EncodedTokens`
            Vectors of shape `(batch, tokens + 2, dim)`.
        """

    @abstractmethod
    def encode_words(self, ids: torch.Tensor) -> torch.Tensor:
        """Encodes words alone: `(words,)`, or `(words, characters)`, → `(words, dim)`."""

    def token_ids(self, text: Mapping[str, Mapping[str, torch.Tensor]]) -> torch.Tensor:
        """
        The ids that this encoder reads, of words or of their characters, among AllenNLP's
        `TextFieldTensors`: shape `(batch, tokens)`, or `(batch, tokens, characters)`. Raises a
        `ConfigurationError` if no indexer makes such ids.
        """
        by_name = {name: ids for tensors in text.values() for name, ids in tensors.items()}
        wanted = "elmo_tokens" if self.reads_characters else "tokens"
        if wanted not in by_name:
            raise ConfigurationError(
                f"{self._expected()}, but the indexers {sorted(text)} make {sorted(by_name)}"
            )
        self.check_token_ids(by_name[wanted])
        return by_name[wanted]

    def check_token_ids(self, ids: torch.Tensor) -> None:
        """
        Raises a `ConfigurationError` if an indexer's ids are of characters and this encoder reads
        words, or the other way round. An encoder of characters may also check how many there are.
        """
        if ids.dim() != (3 if self.reads_characters else 2):
            kind = {2: "words", 3: "characters"}.get(ids.dim(), "another kind")
            raise ConfigurationError(
                f"{self._expected()}, but got ids of {kind}, of the shape {tuple(ids.shape)}"
            )

    def _expected(self) -> str:
        """Names the ids that this encoder reads, and their indexer."""
        if self.reads_characters:
            return (
                "the biLM reads the characters of words, which an indexer of the type "
                "`elmo_scratch_characters` makes"
            )
        return "the biLM reads ids of words, which an indexer of the type `single_id` makes"


@TokenEncoder.register("word")
class WordEncoder(TokenEncoder):
    """
    One trained vector a word of the vocabulary.

    Registered as a `TokenEncoder` with name "word".

    # Parameters

    dim : `int`
        The size of a vector.
    num_words : `int`
        The size of the vocabulary, padding included. Supplied by the language model that owns the
        encoder.
    sparse : `bool`, optional (default = `False`)
        Whether gradients hold only the rows of a batch's words, which makes steps with a large
        vocabulary cheaper. This needs an optimizer that takes sparse gradients beside dense ones:
        "elmo_scratch_adagrad", or AllenNLP's "adagrad" or "dense_sparse_adam". In distributed
        training gradients are never sparse.
    begin_id, end_id : `int`
        The words that mark the beginning and the end of a sentence. Supplied likewise.
    """

    reads_characters = False

    _begin: torch.Tensor
    _end: torch.Tensor

    def __init__(
        self, *, dim: int, num_words: int, begin_id: int, end_id: int, sparse: bool = False
    ) -> None:
        super().__init__(dim)
        self.embedding = torch.nn.Embedding(
            num_words, dim, padding_idx=0, sparse=sparse and not is_distributed()
        )
        torch.nn.init.normal_(self.embedding.weight, std=dim**-0.5)
        with torch.no_grad():
            self.embedding.weight[0].zero_()
        self.register_buffer("_begin", torch.tensor(begin_id), persistent=False)
        self.register_buffer("_end", torch.tensor(end_id), persistent=False)

    def mark_ids(self) -> Tuple[int, int]:
        """The ids of the begin and the end mark of a sentence."""
        return int(self._begin), int(self._end)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> EncodedTokens:
        """
        Ids from 0 to `num_words - 1`, shape `(batch, tokens)`, → vectors
        `(batch, tokens + 2, dim)`. Raises a `ValueError` for ids of another type or out of range,
        also where the mask is `False`.
        """
        check_ids(ids, "words", self.embedding.num_embeddings)
        bounded = add_boundaries(ids.long(), mask, self._begin, self._end)
        return EncodedTokens(self._vectors_of(bounded.ids), bounded.mask)

    def encode_words(self, ids: torch.Tensor) -> torch.Tensor:
        """Shape `(words,)` → `(words, dim)`."""
        return self.embedding(ids)

    def _vectors_of(self, ids: torch.Tensor) -> torch.Tensor:
        """Ids of shape `(*,)` → vectors of shape `(*, dim)`."""
        if not (self.embedding.sparse and torch.is_grad_enabled()):
            return self.embedding(ids)
        # PyTorch's own sparse gradient has a row for each occurrence of a word, and clipping would
        # have to add them up.
        words = ids[ids > 0].unique()
        weight = self.embedding.weight
        vectors = torch.cat([weight.new_zeros(1, self.dim), sparse_rows(weight, words)])
        # Its backward pass is deterministic with many threads, unlike that of `vectors[…]`.
        return torch.nn.functional.embedding(torch.searchsorted(words, ids, right=True), vectors)
