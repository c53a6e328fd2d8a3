import pytest
import torch

from elmo_scratch.modules import LstmState
from elmo_scratch.modules.lstms.filling import Filling
from tests.modules.lstms.random_run import random_run

each_size = pytest.mark.parametrize("dim, cells", [(1, 3), (50, 96), (32, 100), (64, 128)])


@each_size
def test_sizes_become_multiples(dim: int, cells: int) -> None:
    run = random_run([3], dim=dim, cells=cells)
    filling = Filling.of(run.weights.projection)
    from_inputs, from_hidden, projection = filling.weights(run.weights)
    filled_dim, filled_cells = projection.shape
    assert filled_dim % 32 == filled_cells % 32 == 0
    assert 0 <= filled_dim - dim < 32 and 0 <= filled_cells - cells < 32
    assert from_inputs.shape == (4 * filled_cells, run.weights.from_inputs.size(1))
    assert from_hidden.shape == (4 * filled_cells, filled_dim)
    assert filling.bias(run.bias).shape == (4 * filled_cells,)
    hidden, cell = filling.state(run.state)
    assert hidden.shape == (3, filled_dim) and cell.shape == (3, filled_cells)


@each_size
def test_what_is_filled_in_is_zero_and_comes_out_again(dim: int, cells: int) -> None:
    filling = Filling.of(torch.empty(dim, cells))
    gates, outputs, state = (
        torch.randn(5, 4 * cells),
        torch.randn(5, dim),
        LstmState(torch.randn(5, dim), torch.randn(5, cells)),
    )
    filled = torch.stack([filling.bias(own) for own in gates])
    assert torch.equal(filling.own_gates(filled), gates)
    assert filled.count_nonzero() == gates.count_nonzero()
    assert torch.equal(filling.own_outputs(filling.outputs(outputs)), outputs)
    assert filling.outputs(outputs).count_nonzero() == outputs.count_nonzero()
    own = filling.own_state(filling.state(state))
    assert all(torch.equal(*pair) for pair in zip(own, state, strict=True))


def test_what_fits_stays_where_it_is() -> None:
    run = random_run([3], dim=64, cells=128)
    filling = Filling.of(run.weights.projection)
    assert not any(filling)
    assert filling.weights(run.weights) is run.weights and filling.bias(run.bias) is run.bias
    assert filling.state(run.state).hidden is run.state.hidden
    assert filling.scale(None) is None


def test_each_gate_is_filled_up_on_its_own() -> None:
    filling = Filling.of(torch.empty(32, 30))
    bias = filling.bias(torch.arange(1.0, 121.0))
    assert bias.view(4, 32)[:, 30:].eq(0).all()
    assert bias.view(4, 32)[:, 0].tolist() == [1.0, 31.0, 61.0, 91.0]
