from typing import List

import pytest
import torch

from elmo_scratch.modules import BiLm, LstmState
from elmo_scratch.modules.bilm import ReadSentences, read_in_pieces
from elmo_scratch.modules.lstm import LstmStack
from elmo_scratch.modules.sequences import PackedVectors
from tests.kernels.frozen_weights import needs_independent_rows
from tests.modules.tiny_bilms import bilm_of, each_encoder, ids_for

IDS = torch.tensor([[2, 3, 4, 5, 6, 7, 8], [7, 8, 9, 0, 0, 0, 0], [0] * 7, [10] + [0] * 6])
POSITIONS = int((IDS > 0).sum()) + 2 * len(IDS)
"""Those of all sentences together."""


def random_start(bilm: BiLm) -> LstmState:
    start = bilm.new_state_memory("carry").zeros(torch.zeros(()), len(IDS))
    return LstmState(*(torch.randn_like(part) for part in start))


def read_whole(bilm: BiLm, start: LstmState) -> ReadSentences:
    with torch.no_grad():
        return bilm.read_tokens(bilm.token_encoder(ids_for(bilm, IDS), IDS > 0), start)


def parts_of(read: ReadSentences) -> List[torch.Tensor]:
    return [*read.output, *read.state]


@each_encoder
@pytest.mark.parametrize("positions_at_once", [1, 2, 3, 4, 5, 7, POSITIONS - 1, POSITIONS, 1000])
def test_pieces_of_any_size_give_what_the_whole_gives(encoder: str, positions_at_once: int) -> None:
    bilm = bilm_of(encoder)
    start = random_start(bilm)
    pieces = read_in_pieces(bilm, ids_for(bilm, IDS), IDS > 0, start, positions_at_once)
    for part, expected in zip(parts_of(pieces), parts_of(read_whole(bilm, start)), strict=True):
        assert part.dtype == expected.dtype
        assert torch.allclose(part.double(), expected.double(), rtol=0, atol=1e-6)


@needs_independent_rows
@each_encoder
@pytest.mark.parametrize("positions_at_once", [1, 3, 5])
def test_frozen_they_do_to_the_bit(encoder: str, positions_at_once: int) -> None:
    bilm = bilm_of(encoder).requires_grad_(False)
    start = random_start(bilm)
    pieces = read_in_pieces(bilm, ids_for(bilm, IDS), IDS > 0, start, positions_at_once)
    for part, expected in zip(parts_of(pieces), parts_of(read_whole(bilm, start)), strict=True):
        assert torch.equal(part, expected)


@each_encoder
def test_no_piece_is_larger_than_it_may_be(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bilm = bilm_of(encoder)
    sizes = []
    read, encode = LstmStack.forward, bilm.token_encoder.encode_words

    def watched_read(stack: LstmStack, inputs: PackedVectors, *arguments: object) -> object:
        sizes.append(len(inputs.vectors))
        return read(stack, inputs, *arguments)  # type: ignore[arg-type]

    def watched_encode(ids: torch.Tensor) -> torch.Tensor:
        sizes.append(len(ids))
        return encode(ids)

    monkeypatch.setattr(LstmStack, "forward", watched_read)
    monkeypatch.setattr(bilm.token_encoder, "encode_words", watched_encode)
    read_in_pieces(bilm, ids_for(bilm, IDS), IDS > 0, random_start(bilm), 6)
    assert max(sizes) <= 6
    # Words once, positions in each direction.
    assert sum(sizes) >= int((IDS > 0).sum()) + 2 * POSITIONS


def test_a_mask_with_a_hole_is_an_error() -> None:
    bilm, ids = bilm_of(), torch.tensor([[2, 0, 4]])
    start = bilm.new_state_memory("carry").zeros(torch.zeros(()), 1)
    with pytest.raises(ValueError, match="real tokens of a row come before padding"):
        read_in_pieces(bilm, ids, ids > 0, start, 2)
