import pytest
import torch

from elmo_scratch.kernels.lstm.native import SizePadding
from tests.kernels.lstm.random_run import random_run


@pytest.mark.parametrize("dim, cells", [(1, 3), (50, 96), (32, 100)])
def test_each_gate_and_each_output_is_padded_by_zeros(dim: int, cells: int) -> None:
    run = random_run([3], dim=dim, cells=cells, dropout=0.3)
    padding = SizePadding.of(run)
    padded = padding.pad_run(run)
    padded_dim, padded_cells = padded.weights.projection_weight.shape
    assert padded_dim % 32 == padded_cells % 32 == 0
    assert 0 <= padded_dim - dim < 32 and 0 <= padded_cells - cells < 32
    for own, larger in zip(run.tensors(), padded.tensors(), strict=True):
        assert own.count_nonzero() == larger.count_nonzero()
    gates = padded.bias.view(4, padded_cells)
    assert torch.equal(gates[:, :cells].flatten(), run.bias) and not gates[:, cells:].any()
    pairs = zip(padding.unpad_state(padded.state), run.state, strict=True)
    assert all(torch.equal(*pair) for pair in pairs)


def test_what_fits_stays_where_it_is() -> None:
    run = random_run([3], dim=64, cells=128)
    assert SizePadding.of(run).pad_run(run) is run
