from typing import List, NamedTuple, Optional

import pytest
import torch

from elmo_scratch.modules import LstmState
from elmo_scratch.modules.lstms.steps import Clips, LstmProducts, LstmWeights, Run, run_steps

BATCH_SIZES = [3, 2, 2]
BATCH, READ, INPUT_DIM, DIM, CELL = 4, 7, 3, 5, 11


class Given(NamedTuple):
    products: LstmProducts
    bias: torch.Tensor
    inputs: torch.Tensor
    state: LstmState


def given(is_projected: bool = True) -> Given:
    """Random numbers, in float64. The fourth sentence has no position."""
    torch.manual_seed(13)
    dim = DIM if is_projected else CELL
    weights = LstmWeights(
        torch.randn(4 * CELL, INPUT_DIM).double(),
        torch.randn(4 * CELL, dim).double(),
        torch.randn(dim if is_projected else 0, CELL).double(),
    )
    products = LstmProducts.of(weights, torch.double)
    state = LstmState(torch.randn(BATCH, dim).double(), torch.randn(BATCH, CELL).double())
    return Given(products, torch.randn(4 * CELL).double(), torch.randn(READ, 3).double(), state)


def run(
    given: Given, clips: Clips, scale: Optional[torch.Tensor] = None, keeps_steps: bool = False
) -> Run:
    return run_steps(
        given.products,
        given.bias,
        given.inputs,
        BATCH_SIZES,
        given.state,
        clips,
        scale,
        keeps_steps,
    )


def test_a_weight_without_rows_stands_for_no_projection() -> None:
    assert given().products.projection is not None
    assert given(is_projected=False).products.projection is None


@pytest.mark.parametrize("is_projected", [True, False])
def test_each_sentences_last_state_is_its_own_last_output(is_projected: bool) -> None:
    what = given(is_projected)
    done = run(what, Clips(0.6, 0.7))
    # Where each of the four sentences is read last; the fourth is not read at all.
    assert torch.equal(done.state.hidden[:3], done.outputs[[5, 6, 2]])
    assert torch.equal(done.state.hidden[3], what.state.hidden[3])
    assert torch.equal(done.state.cell[3], what.state.cell[3])


@pytest.mark.parametrize("keeps_steps", [False, True])
def test_steps_are_kept_only_where_they_are_asked_for(keeps_steps: bool) -> None:
    done = run(given(), Clips(0.6, 0.7), keeps_steps=keeps_steps)
    assert bool(done.steps) == keeps_steps
    assert torch.equal(done.outputs, run(given(), Clips(0.6, 0.7)).outputs)


@pytest.mark.parametrize(
    "clips, bounded", [(Clips(0.25, None), [True, False]), (Clips(None, 0.25), [False, True])]
)
def test_each_clip_bounds_its_own_numbers(clips: Clips, bounded: List[bool]) -> None:
    done = run(given(), clips)
    of_read_sentences = (done.state.cell[:3], done.outputs)
    assert [bool(part.abs().max() == 0.25) for part in of_read_sentences] == bounded


def test_outputs_that_are_not_projected_are_not_clipped_either() -> None:
    what = given(is_projected=False)
    assert torch.equal(run(what, Clips(0.6, 0.01)).outputs, run(what, Clips(0.6, None)).outputs)


def test_the_output_scale_multiplies_each_sentences_outputs_behind_the_clip() -> None:
    scale = torch.arange(1.0, BATCH + 1).double().unsqueeze(1).expand(BATCH, DIM) * 10
    done = run(given(), Clips(None, 0.1), scale)
    first = run(given(), Clips(None, 0.1)).outputs[:3]
    assert torch.allclose(done.outputs[:3], first * scale[:3])
    assert done.outputs[:3].abs().amax(dim=1).tolist() == pytest.approx([1.0, 2.0, 3.0])


def test_what_came_is_left_as_it_is() -> None:
    what = given()
    before = [part.clone() for part in (what.inputs, what.bias, *what.state)]
    run(what, Clips(0.1, 0.1), keeps_steps=True)
    for part, kept in zip((what.inputs, what.bias, *what.state), before, strict=True):
        assert torch.equal(part, kept)
