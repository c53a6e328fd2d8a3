from typing import List, Optional

import pytest
import torch

from elmo_scratch.kernels.lstm.reference import LstmProducts, lstm_reference
from elmo_scratch.kernels.lstm.run import Clips, LstmResult, LstmRun, LstmWeights
from elmo_scratch.modules import LstmState

BATCH_SIZES = [3, 2, 2]
BATCH, PACKED, INPUT_DIM, DIM, CELL = 4, 7, 3, 5, 11


def random_run(
    clips: Clips, mask: Optional[torch.Tensor] = None, is_projected: bool = True
) -> LstmRun:
    """In float64. The fourth sentence has no position."""
    torch.manual_seed(13)
    dim = DIM if is_projected else CELL
    shapes = [(4 * CELL, INPUT_DIM), (4 * CELL, dim), (dim if is_projected else 0, CELL)]
    return LstmRun(
        LstmWeights(*(torch.randn(shape).double() for shape in shapes)),
        torch.double,
        torch.randn(4 * CELL).double(),
        torch.randn(PACKED, INPUT_DIM).double(),
        BATCH_SIZES,
        LstmState(torch.randn(BATCH, dim).double(), torch.randn(BATCH, CELL).double()),
        clips,
        mask,
    )


def read(run: LstmRun, needs_grad: bool = False) -> LstmResult:
    return lstm_reference(run, LstmProducts.of(run), needs_grad)


def test_a_weight_without_rows_stands_for_no_projection() -> None:
    clips = Clips(None, None)
    assert LstmProducts.of(random_run(clips)).projection is not None
    assert LstmProducts.of(random_run(clips, is_projected=False)).projection is None


@pytest.mark.parametrize("is_projected", [True, False])
def test_each_sentences_last_state_is_its_own_last_output(is_projected: bool) -> None:
    run = random_run(Clips(0.6, 0.7), is_projected=is_projected)
    done = read(run)
    # Where each of the four sentences is read last; the fourth is not read at all.
    assert torch.equal(done.state.hidden[:3], done.outputs[[5, 6, 2]])
    assert torch.equal(done.state.hidden[3], run.state.hidden[3])
    assert torch.equal(done.state.cell[3], run.state.cell[3])


@pytest.mark.parametrize("needs_grad", [False, True])
def test_steps_are_kept_only_for_a_backward_pass(needs_grad: bool) -> None:
    run = random_run(Clips(0.6, 0.7))
    done = read(run, needs_grad)
    assert bool(done.kept) == (done.backward is not None) == needs_grad
    assert torch.equal(done.outputs, read(run).outputs)


@pytest.mark.parametrize(
    "clips, bounded", [(Clips(0.25, None), [True, False]), (Clips(None, 0.25), [False, True])]
)
def test_each_clip_bounds_its_own_numbers(clips: Clips, bounded: List[bool]) -> None:
    done = read(random_run(clips))
    of_read_sentences = (done.state.cell[:3], done.outputs)
    assert [bool(part.abs().max() == 0.25) for part in of_read_sentences] == bounded


def test_outputs_that_are_not_projected_are_not_clipped_either() -> None:
    bounded, free = (
        read(random_run(Clips(0.6, bound), is_projected=False)) for bound in (0.01, None)
    )
    assert torch.equal(bounded.outputs, free.outputs)


def test_the_dropout_mask_multiplies_each_sentences_outputs_behind_the_clip() -> None:
    mask = torch.arange(1.0, BATCH + 1).double().unsqueeze(1).expand(BATCH, DIM) * 10
    done = read(random_run(Clips(None, 0.1), mask))
    first = read(random_run(Clips(None, 0.1))).outputs[:3]
    assert torch.allclose(done.outputs[:3], first * mask[:3])
    assert done.outputs[:3].abs().amax(dim=1).tolist() == pytest.approx([1.0, 2.0, 3.0])
