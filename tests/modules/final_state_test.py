from typing import List

import pytest
import torch

from elmo_scratch.kernels.lstm.run import LstmState
from elmo_scratch.modules import BiLm
from elmo_scratch.modules import bilm as warming_up
from elmo_scratch.modules.bilm import final_state
from elmo_scratch.modules.lstm import LstmStack
from elmo_scratch.modules.sequences import PackedVectors
from tests.modules.tiny_bilms import bilm_of, each_encoder, ids_for

IDS = torch.tensor([[2, 3, 4, 5, 6, 7, 8], [7, 8, 9, 0, 0, 0, 0], [0] * 7, [10] + [0] * 6])


def found(bilm: BiLm) -> LstmState:
    """The state after these sentences, the first of them in a batch of its own."""
    batches = [(ids_for(bilm, part), part > 0) for part in (IDS[:1], IDS[1:, :3], IDS)]
    state = final_state(bilm, batches)
    assert state is not None
    return state


@each_encoder
@pytest.mark.parametrize("positions_at_once", [1, 3, 6])
def test_long_sentences_are_read_in_pieces_to_the_same_state(
    encoder: str, positions_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bilm = bilm_of(encoder, state="warm")
    expected = found(bilm)
    monkeypatch.setattr(warming_up, "POSITIONS_AT_ONCE", positions_at_once)
    read: List[int] = []
    forward = LstmStack.forward

    def watched(stack: LstmStack, inputs: PackedVectors, *rest: object) -> object:
        read.append(len(inputs.vectors))
        return forward(stack, inputs, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(LstmStack, "forward", watched)
    for part, whole in zip(found(bilm), expected, strict=True):
        assert torch.allclose(part, whole, rtol=0, atol=1e-6)
    assert max(read) == positions_at_once


def test_without_a_sentence_there_is_no_state() -> None:
    assert final_state(bilm_of(), []) is None
    assert final_state(bilm_of(), [(IDS[:0], IDS[:0] > 0)]) is None
