"""The places of a batch where words are predicted: of sentences, or of windows of running text."""

from typing import Dict, NamedTuple

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.bilm import BiLm
from elmo_scratch.modules.sequences import add_boundaries
from elmo_scratch.modules.state_memory import StateMemory
from elmo_scratch.modules.token_encoders.token_ids import check_token_ids


class Predictions(NamedTuple):
    """
    The predictions of the two directions, left-to-right ones first. `states`, of shape `(predicted,
    dim)`, predict the words with the ids `targets`, of shape `(predicted,)`.

    `fullness` is the share of a window of running text that holds text, in `[0, 1]`: the last
    windows of an epoch, where most streams have ended, may hold a single word.
    """

    states: torch.Tensor
    targets: torch.Tensor
    num_left_to_right: int
    fullness: float = 1.0

    @classmethod
    def of_sentences(
        cls, top: torch.Tensor, words: torch.Tensor, mask: torch.Tensor
    ) -> "Predictions":
        """
        Every position except the first is predicted from its left, and every one except the last
        from its right: the same number of predictions in both directions. `top`, the last layer,
        has the shape `(batch, positions, width)`; `words`, ids with the boundary marks, and `mask`
        have the shape `(batch, positions)`.
        """
        left_to_right, right_to_left = top.chunk(2, dim=-1)  # each (batch, positions, dim)
        followed = mask[:, 1:]  # (batch, positions - 1)
        from_left, from_right = left_to_right[:, :-1][followed], right_to_left[:, 1:][followed]
        return cls(
            torch.cat([from_left, from_right]),
            torch.cat([words[:, 1:][followed], words[:, :-1][followed]]),
            len(from_left),
        )

    @classmethod
    def of_windows(
        cls,
        left_to_right: torch.Tensor,
        right_to_left: torch.Tensor,
        left_to_right_targets: torch.Tensor,
        right_to_left_targets: torch.Tensor,
        mask: torch.Tensor,
    ) -> "Predictions":
        """
        `left_to_right` and `right_to_left` are the last layer of each direction in its own reading
        order, shape `(batch, positions, dim)`. Their targets, the next words in each direction, 0
        for none, and `mask`, `True` where a stream goes on, have the shape `(batch, positions)`.
        """
        from_left = left_to_right[left_to_right_targets > 0]
        from_right = right_to_left[right_to_left_targets > 0]
        targets = [words[words > 0] for words in (left_to_right_targets, right_to_left_targets)]
        return cls(
            torch.cat([from_left, from_right]),
            torch.cat(targets),
            len(from_left),
            int(mask.sum()) / mask.numel(),
        )


def predict_sentences(
    bilm: BiLm,
    ids: torch.Tensor,
    words: torch.Tensor,
    mask: torch.Tensor,
    begin: torch.Tensor,
    end: torch.Tensor,
) -> Predictions:
    """
    Reads a batch of independent sentences.

    # Parameters

    bilm : `BiLm`
        The network; its `state` says what a sentence starts from.
    ids : `torch.Tensor`
        What its token encoder reads, shape `(batch, tokens)` or `(batch, tokens, characters)`.
    words : `torch.Tensor`
        Shape `(batch, tokens)`: the ids of the words to predict.
    mask : `torch.Tensor`
        Shape `(batch, tokens)`.
    begin, end : `torch.Tensor`
        Shape `()`: the ids of the marks of sentence boundaries among the words to predict.

    # Returns

    `Predictions`
        Sentence by sentence, one more than it has words: left to right of each word and of the end,
        right to left of the beginning and of each word.
    """
    output = bilm(ids, mask)
    bounded = add_boundaries(words, mask, begin, end)
    return Predictions.of_sentences(output.layers[-1], bounded.ids, output.mask)


def predict_windows(
    bilm: BiLm, windows: Dict[str, torch.Tensor], running_text: StateMemory
) -> Predictions:
    """
    Reads a batch of the loader `elmo_scratch_stream`.

    # Parameters

    bilm : `BiLm`
        The network.
    windows : `Dict[str, torch.Tensor]`
        The tensors that `StreamLoader` tells of.
    running_text : `StateMemory`
        Of the kind `"carry"`: the states that the windows start from. Their last states are kept
        in it.

    # Returns

    `Predictions`
        Row by row; in a row each direction's are in its own order of reading.

    # Raises

    ConfigurationError
        If the biLM reads characters and the windows have none, or other ones.
    """
    encoder = bilm.token_encoder
    if encoder.reads_characters and "characters" not in windows:
        raise ConfigurationError(
            "the biLM reads the characters of words: add an indexer `elmo_scratch_characters` "
            "to the `token_indexers` of the reader"
        )
    words = windows["characters" if encoder.reads_characters else "words"]
    check_token_ids(words.unsqueeze(0), encoder)
    vectors = encoder.encode_words(words)  # (distinct, dim)
    mask = windows["mask"]  # (batch, positions)
    read = bilm.read_windows(
        torch.nn.functional.embedding(windows["left_to_right"], vectors),
        torch.nn.functional.embedding(windows["right_to_left"], vectors),
        mask,
        running_text.start(vectors, len(mask)),
    )
    running_text.keep(read.state)
    return Predictions.of_windows(
        read.left_to_right,
        read.right_to_left,
        windows["left_to_right_targets"],
        windows["right_to_left_targets"],
        mask,
    )
