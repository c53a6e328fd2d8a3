"""Sentences of any length through a biLM, in an amount of memory that doesn't grow with them."""

from typing import Iterator, List, NamedTuple

import torch

from elmo_scratch.kernels.lstm.run import LstmState, step_groups
from elmo_scratch.modules.bilm import BiLm
from elmo_scratch.modules.bilm_output import BiLmOutput, ReadSentences
from elmo_scratch.modules.masks import sentence_lengths
from elmo_scratch.modules.reading_order import ReadingOrder


class _Piece(NamedTuple):
    """Consecutive steps: which part of a `ReadingOrder` they are, and how wide each is."""

    part: slice
    batch_sizes: List[int]


def read_in_pieces(
    bilm: BiLm, ids: torch.Tensor, mask: torch.Tensor, start: LstmState, positions_at_once: int
) -> ReadSentences:
    """
    As `BiLm.read_from`, but that the layers are put together on the CPU, from pieces of the
    sentences: each direction begins a piece with the state that it ended the one before with, left
    to right from the beginning and right to left from the end. Nothing is dropped out, and there
    are no gradients.

    Beside the result, the memory it takes is bounded by `positions_at_once`.

    # Parameters

    bilm : `BiLm`
        On any device, in evaluation mode.
    ids : `torch.Tensor`
        Shape `(batch, tokens)`, or `(batch, tokens, characters)`, as the token encoder reads; on
        the CPU.
    mask : `torch.BoolTensor`
        Shape `(batch, tokens)`, on the CPU.
    start : `LstmState`
        Of shape `(layers, batch, ...)`, on the biLM's device: where each sentence starts.
    positions_at_once : `int`
        Positions of a piece, those of all sentences together; but a piece has at least one of each
        sentence that has not ended.

    # Returns

    `ReadSentences`
        The output on the CPU, the state on the biLM's device.

    # Raises

    ValueError
        If real tokens don't come first in each row.
    """
    batch, tokens = mask.shape
    positions = tokens + 2
    lengths = sentence_lengths(mask)  # (batch,)
    bounded_mask = torch.arange(positions, device=mask.device) < lengths.unsqueeze(1) + 2
    # Both directions of a position lie side by side, as in the result.
    laid = torch.zeros(bilm.num_layers, batch * positions, 2, bilm.dim, device="cpu")
    with torch.no_grad():
        _lay_tokens(bilm, ids, mask, laid[0], positions_at_once)
        order = ReadingOrder.of(bounded_mask)
        final = LstmState.cat(
            [
                _lay_direction(bilm, direction, laid, order, start, positions_at_once)
                for direction in range(2)
            ]
        )
    layers = laid.view(bilm.num_layers, batch, positions, bilm.width)
    return ReadSentences(BiLmOutput(layers, bounded_mask), final)


def _lay_tokens(
    bilm: BiLm,
    ids: torch.Tensor,
    mask: torch.Tensor,
    layer: torch.Tensor,
    at_once: int,
) -> None:
    """Fills the token layer, of shape `(batch * positions, 2, dim)`."""
    batch, tokens = mask.shape
    device = next(bilm.parameters()).device
    # An empty sentence is its two marks.
    no_ids, no_mask = ids.new_zeros(1, 0, *ids.shape[2:]), mask.new_zeros(1, 0)
    marks = bilm.token_encoder(no_ids.to(device), no_mask.to(device)).vectors[0]  # (2, dim)
    begin, end = marks.to(layer)
    begins = torch.arange(batch, device=mask.device) * (tokens + 2)
    layer[begins] = begin
    layer[begins + mask.sum(dim=1) + 1] = end
    rows, places = mask.nonzero(as_tuple=True)
    for row, place in zip(rows.split(at_once), places.split(at_once)):
        vectors = bilm.token_encoder.encode_words(ids[row, place].long().to(device))
        layer[begins[row] + place + 1] = vectors.to(layer).unsqueeze(1)


def _lay_direction(
    bilm: BiLm,
    direction: int,
    laid: torch.Tensor,
    order: ReadingOrder,
    start: LstmState,
    at_once: int,
) -> LstmState:
    """
    Fills a direction's half of the layers, of shape `(layers, batch * positions, 2, dim)`, above
    the token layer, and returns its last state.
    """
    stack = (bilm.left_to_right, bilm.right_to_left)[direction]
    places = (order.left_to_right, order.right_to_left)[direction]
    device = start.hidden.device
    state = start.half(direction).rows(order.sorted_indices.to(device))
    for piece in _pieces(order.batch_sizes, at_once):
        here = places[piece.part]
        inputs = laid[0, :, direction].index_select(0, here).to(device)
        read = stack(inputs, piece.batch_sizes, state)
        state = read.state
        for number, outputs in enumerate(read.layers, start=1):
            laid[number, :, direction].index_copy_(0, here, outputs.to(laid))
    return state.rows(order.unsorted_indices.to(device))


def _pieces(batch_sizes: List[int], at_once: int) -> Iterator[_Piece]:
    """All steps of an order, piece by piece."""
    first = 0
    for group in step_groups(batch_sizes, at_once):
        last = first + sum(group)
        yield _Piece(slice(first, last), group)
        first = last
