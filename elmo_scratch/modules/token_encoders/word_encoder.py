"""Words by an embedding layer."""

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
        The size of the vocabulary, padding included. The language model that owns the encoder
        supplies it.
    sparse : `bool`, optional (default = `False`)
        Whether gradients hold only the rows of the words of a batch, for optimizers that then
        change only those and take dense ones beside them: "elmo_scratch_adagrad" and AllenNLP's
        "adagrad" and "dense_sparse_adam". Where the vocabulary is large, a step costs as much less.
        In distributed training gradients are never sparse.
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
        """The ids of the words that mark the beginning and the end of a sentence."""
        return int(self._begin), int(self._end)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> EncodedTokens:
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(batch, tokens)`, from 0 to `num_words - 1`.
        mask : `torch.BoolTensor`
            Shape `(batch, tokens)`.

        # Returns

        `EncodedTokens`
            Vectors of shape `(batch, tokens + 2, dim)`.

        # Raises

        ValueError
            If an id, be it under the padding, is no word's, or their type is not that of ids.
        """
        check_ids(ids, "words", self.embedding.num_embeddings)
        bounded = add_boundaries(ids.long(), mask, self._begin, self._end)
        return EncodedTokens(self._vectors_of(bounded.ids), bounded.mask)

    def encode_words(self, ids: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(words,)`.

        # Returns

        `torch.Tensor`
            Shape `(words, dim)`.
        """
        return self.embedding(ids)

    def _vectors_of(self, ids: torch.Tensor) -> torch.Tensor:
        """Shape `(*, dim)` for ids of shape `(*,)`."""
        if not (self.embedding.sparse and torch.is_grad_enabled()):
            return self.embedding(ids)
        # PyTorch's own sparse gradient has a row for each word that comes, however often it comes,
        # and clipping would have to add them up.
        words = ids[ids > 0].unique()
        weight = self.embedding.weight
        vectors = torch.cat([weight.new_zeros(1, self.dim), sparse_rows(weight, words)])
        # Unlike the backward pass of `vectors[…]`, its adds in the same order with many threads.
        return torch.nn.functional.embedding(torch.searchsorted(words, ids, right=True), vectors)
