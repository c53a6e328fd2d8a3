import pytest
import torch

from elmo_scratch.kernels import library as panels
from elmo_scratch.kernels.library import pack_weights
from tests.kernels.compiled_dtypes import each_dtype_of, needs_bfloat16

pytestmark = pytest.mark.skipif(not panels.PACK, reason="this processor reads no panels")

ROWS, COLUMNS = 128, 192
FEWER_ROWS, FEWER_COLUMNS = 96, 160
"""Of which the last panel of outputs is filled up."""

each_dtype = each_dtype_of(panels.PACK)


def numbered(rows: int = ROWS, columns: int = COLUMNS) -> torch.Tensor:
    """Numbers that no rounding changes."""
    return torch.randperm(rows * columns).remainder(256).float().view(rows, columns)


@each_dtype
@pytest.mark.parametrize("is_turned", [False, True])
def test_a_panel_has_all_of_64_outputs_input_by_input(dtype: torch.dtype, is_turned: bool) -> None:
    weight = numbered()
    packed = pack_weights(weight, dtype, False, is_turned=is_turned)
    assert packed.dtype == dtype and packed.numel() == weight.numel()
    lane = 1 if dtype == torch.float32 else 2
    outputs = weight.t() if is_turned else weight
    expected = outputs.reshape(-1, 64, outputs.size(1) // lane, lane).transpose(1, 2)
    assert torch.equal(packed.flatten(), expected.flatten().to(dtype))


@each_dtype
def test_a_panel_of_gates_has_all_four_of_16_cells(dtype: torch.dtype) -> None:
    weight = numbered()
    packed = pack_weights(weight, dtype, False, is_of_gates=True)
    gates = weight.view(4, ROWS // 64, 16, COLUMNS).transpose(0, 1).reshape(ROWS, COLUMNS)
    assert torch.equal(packed, pack_weights(gates, dtype, False))


@needs_bfloat16(panels.PACK)
@pytest.mark.parametrize("is_turned", [False, True])
def test_for_tiles_it_lies_tile_by_tile(is_turned: bool) -> None:
    weight = numbered()
    packed = pack_weights(weight, torch.bfloat16, True, is_turned=is_turned)
    outputs = weight.t() if is_turned else weight
    # Two tiles beside each other, of 16 rows with pairs of inputs for 16 outputs.
    tiles = outputs.reshape(-1, 2, 16, outputs.size(1) // 32, 16, 2).permute(0, 3, 1, 4, 2, 5)
    assert torch.equal(packed.flatten(), tiles.flatten().bfloat16())


@each_dtype
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("has_tiles", [False, True])
def test_behind_the_last_outputs_are_zeros(
    dtype: torch.dtype, is_turned: bool, has_tiles: bool
) -> None:
    weight = numbered(FEWER_ROWS, FEWER_COLUMNS)
    packed = pack_weights(weight, dtype, has_tiles, is_turned=is_turned)
    missing = (0, 32, 0, 0) if is_turned else (0, 0, 0, 32)
    filled = torch.nn.functional.pad(weight, missing)
    assert packed.shape == (filled.t() if is_turned else filled).shape
    assert torch.equal(packed, pack_weights(filled, dtype, has_tiles, is_turned=is_turned))
