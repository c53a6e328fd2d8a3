"""Reads a text through a biLM for the state that it ends with."""

from typing import Iterable, Optional, Tuple

import torch

from elmo_scratch.kernels.lstm.run import LstmState
from elmo_scratch.modules.bilm import BiLm
from elmo_scratch.modules.reading_in_pieces import read_in_pieces
from elmo_scratch.modules.token_encoders import EncodedTokens

POSITIONS_AT_ONCE = 2**13
"""Longer sentences are read in pieces of so many positions."""


@torch.no_grad()
def state_after(
    bilm: BiLm, batches: Iterable[Tuple[torch.Tensor, torch.Tensor]]
) -> Optional[LstmState]:
    """
    # Parameters

    bilm : `BiLm`
        In evaluation mode.
    batches : `Iterable[Tuple[torch.Tensor, torch.Tensor]]`
        As in `BiLm.warm_up`.

    # Returns

    `Optional[LstmState]`
        The state that the last sentence ends with, where each starts from that of the one before
        it; shape `(layers, 1, ...)`, over the layers of both directions. `None` without a sentence.
    """
    state: Optional[LstmState] = None
    for ids, mask in batches:
        tokens: Optional[EncodedTokens] = None
        if mask.size(1) + 2 <= POSITIONS_AT_ONCE:
            tokens = bilm.token_encoder(ids, mask)
        for row in range(len(mask)):
            if state is None:
                state = bilm.state_memory.zeros(next(bilm.parameters()), 1)
            one = slice(row, row + 1)
            if tokens is None:
                words = slice(int(mask[row].sum()))
                own_ids, own_mask = ids[one, words].cpu(), mask[one, words].cpu()
                state = read_in_pieces(bilm, own_ids, own_mask, state, POSITIONS_AT_ONCE).state
            else:
                positions = slice(int(tokens.mask[row].sum()))
                own = EncodedTokens(tokens.vectors[one, positions], tokens.mask[one, positions])
                state = bilm.read_from(state, own).state
    return state
