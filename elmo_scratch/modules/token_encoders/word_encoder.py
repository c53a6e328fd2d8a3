"""A token encoder with one embedding per word."""

from typing import Tuple

import torch
from allennlp.common.util import is_distributed

from elmo_scratch.kernels import sparse_rows
from elmo_scratch.modules.sequences import add_boundaries
from elmo_scratch.modules.token_encoders.token_encoder import EncodedTokens, TokenEncoder, check_ids


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
