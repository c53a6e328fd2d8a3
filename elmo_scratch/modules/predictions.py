"""The places of a batch where words are predicted: of sentences, or of windows of running text."""

from typing import Dict, NamedTuple, Optional

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.bilm import BiLm
from elmo_scratch.modules.lstm import StateMemory
from elmo_scratch.modules.sequences import add_boundaries


class LastLayer(NamedTuple):
    """
    The last layer of each direction, shape `(batch, positions, dim)`, each in an order in which
    successive positions are read one after the other; and where there is text, `mask`, of shape
    `(batch, positions)`.
    """

    left_to_right: torch.Tensor
    right_to_left: torch.Tensor
    mask: torch.Tensor

    def mean_square_change(self) -> torch.Tensor:
        """
        The mean square of the difference between the outputs at successive positions of a row, over
        both directions, in float32 or wider; shape `()`, zero without any.
        """
        follows = (self.mask[:, 1:] & self.mask[:, :-1]).unsqueeze(-1)  # (batch, positions - 1, 1)
        total = torch.zeros((), device=self.mask.device)
        for outputs in (self.left_to_right, self.right_to_left):
            wide = outputs.to(torch.promote_types(outputs.dtype, torch.float32))
            changes = (wide[:, 1:] - wide[:, :-1]) * follows
            total = total + changes.square().sum()
        return total / max(1, 2 * int(follows.sum()) * self.left_to_right.size(-1))


class Predictions(NamedTuple):
    """
    The predictions of the two directions, left-to-right ones first.

    # Parameters

    states : `torch.Tensor`
        Shape `(predicted, dim)`: the outputs that predict words.
    targets : `torch.Tensor`
        Shape `(predicted,)`: the ids of the words.
    num_left_to_right : `int`
        How many of them are left-to-right ones.
    rows : `torch.Tensor`
        Shape `(predicted,)`: the row of the batch that each is from. Rows of the right-to-left
        direction are counted on from those of the other, so that there are `2 * batch`.
    last_layer : `LastLayer`
        All outputs.
    fullness : `float`, optional (default = `1.0`)
        How much text a window of running text holds, as a share of `unroll_steps` positions in each
        row: the last windows of an epoch, where most streams have ended, may hold a single word.
        Above 1 for a window of random length that is longer.
    """

    states: torch.Tensor
    targets: torch.Tensor
    num_left_to_right: int
    rows: torch.Tensor
    last_layer: LastLayer
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
        rows, places = mask[:, 1:].nonzero(as_tuple=True)
        states = [left_to_right[rows, places], right_to_left[rows, places + 1]]
        return cls(
            torch.cat(states),
            torch.cat([words[rows, places + 1], words[rows, places]]),
            len(rows),
            torch.cat([rows, rows + len(mask)]),
            LastLayer(left_to_right, right_to_left, mask),
        )

    @classmethod
    def of_windows(
        cls,
        left_to_right: torch.Tensor,
        right_to_left: torch.Tensor,
        left_to_right_targets: torch.Tensor,
        right_to_left_targets: torch.Tensor,
        mask: torch.Tensor,
        unroll_steps: Optional[int] = None,
    ) -> "Predictions":
        """
        `left_to_right` and `right_to_left` are the last layer of each direction in its own reading
        order, shape `(batch, positions, dim)`. Their targets, the next words in each direction, 0
        for none, and `mask`, `True` where a stream goes on, have the shape `(batch, positions)`. A
        full window has `unroll_steps` positions, or as many as there are.
        """
        left_rows, left_places = left_to_right_targets.nonzero(as_tuple=True)
        right_rows, right_places = right_to_left_targets.nonzero(as_tuple=True)
        states = [left_to_right[left_rows, left_places], right_to_left[right_rows, right_places]]
        targets = [
            left_to_right_targets[left_rows, left_places],
            right_to_left_targets[right_rows, right_places],
        ]
        batch, positions = mask.shape
        return cls(
            torch.cat(states),
            torch.cat(targets),
            len(left_rows),
            torch.cat([left_rows, right_rows + batch]),
            LastLayer(left_to_right, right_to_left, mask),
            int(mask.sum()) / (batch * (unroll_steps or positions)),
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
    bilm: BiLm,
    windows: Dict[str, torch.Tensor],
    running_text: StateMemory,
    begin: torch.Tensor,
    end: torch.Tensor,
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
    begin, end : `torch.Tensor`
        Shape `()`: the ids of the marks of sentence boundaries among the words to predict.

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
    encoder.check_token_ids(words.unsqueeze(0))
    vectors = encoder.encode_words(words)  # (distinct, dim)
    if bilm.drops_words:
        is_mark = (windows["words"] == begin) | (windows["words"] == end)
        vectors = vectors * bilm.word_scales(words).masked_fill(is_mark, 1.0).unsqueeze(1)
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
        int(windows["unroll_steps"]) if "unroll_steps" in windows else None,
    )
