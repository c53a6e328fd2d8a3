import copy
import math
import pickle
from typing import Any, Dict, List, Optional

import pytest
import torch

from elmo_scratch.kernels.lstm import native
from elmo_scratch.kernels.lstm.run import LstmResult, LstmRun
from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules import LstmState, ProjectedLstm
from elmo_scratch.modules.sequences import PackedVectors
from tests.kernels.compiled_dtypes import each_dtype_of
from tests.kernels.frozen_weights import EACH_INDEPENDENT_PRECISION, Change, each_change
from tests.kernels.lstm.plain_lstm import Clipped, read_packed, read_plainly

LENGTHS = [3, 5, 0, 1, 5]
BATCH, POSITIONS, INPUT_DIM, DIM, CELL = 5, 5, 3, 11, 7
DIMS_WITH_AND_WITHOUT_PROJECTION = [DIM, CELL]


def random_lstm(dim: int = DIM, **settings: Any) -> ProjectedLstm:
    """In float64, with weights and biases large enough for the gates to differ."""
    torch.manual_seed(13)
    lstm = ProjectedLstm(INPUT_DIM, dim, CELL, **settings).double()
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter)
    return lstm


def random_inputs() -> torch.Tensor:
    return torch.randn(BATCH, POSITIONS, INPUT_DIM).double()


def random_state(dim: int = DIM) -> LstmState:
    return LstmState(torch.randn(BATCH, dim).double(), torch.randn(BATCH, CELL).double())


def one_cell(limit: Optional[float] = 3.0, projection_clip: Optional[float] = 3.0) -> ProjectedLstm:
    """Projected to two equal numbers; the gates depend on the bias alone."""
    lstm = ProjectedLstm(1, 2, 1, cell_clip=limit, projection_clip=projection_clip)
    torch.nn.init.zeros_(lstm.input_weight)
    torch.nn.init.zeros_(lstm.recurrent_weight)
    return lstm.requires_grad_(False)


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("dim", DIMS_WITH_AND_WITHOUT_PROJECTION)
@pytest.mark.parametrize("limit", [None, 0.6])
def test_outputs_and_last_states_follow_the_formula(
    is_frozen: bool, dim: int, limit: Optional[float]
) -> None:
    lstm = random_lstm(dim, cell_clip=limit, projection_clip=limit).requires_grad_(not is_frozen)
    inputs, state = random_inputs(), random_state(dim)
    clipped: List[Clipped] = []
    expected = read_plainly(lstm, inputs, LENGTHS, state, clipped=clipped)
    for ours, plain in zip(read_packed(lstm, inputs, LENGTHS, state), expected, strict=True):
        assert torch.allclose(ours, plain, rtol=0, atol=1e-12)
    bites = [sum(numbers) for numbers in zip(*clipped, strict=True)]
    assert (0 < bites[0] < bites[2]) == (limit is not None)
    assert (0 < bites[1] < bites[3]) == (limit is not None and dim == DIM)


def test_a_sentence_without_a_position_ends_where_it_starts() -> None:
    lstm, state = random_lstm(), random_state()
    done = read_packed(lstm, random_inputs(), LENGTHS, state)
    assert torch.equal(done.hidden[2], state.hidden[2])
    assert torch.equal(done.cell[2], state.cell[2])


def test_where_nothing_is_read_the_state_stays() -> None:
    lstm, state = random_lstm(), random_state()
    done = lstm(PackedVectors(torch.zeros(0, INPUT_DIM).double(), []), state)
    assert done.outputs.shape == (0, DIM)
    assert torch.equal(done.state.hidden, state.hidden)
    assert torch.equal(done.state.cell, state.cell)


def test_more_positions_than_go_through_one_product_follow_the_formula() -> None:
    lstm = random_lstm(cell_clip=0.6, projection_clip=0.7)
    lengths = [50, 49, 48, 47, 11] * 4
    inputs = torch.randn(len(lengths), 50, INPUT_DIM).double()
    state = LstmState(*(part.repeat(4, 1) for part in random_state()))
    expected = read_plainly(lstm, inputs, lengths, state)
    for ours, plain in zip(read_packed(lstm, inputs, lengths, state), expected, strict=True):
        assert torch.allclose(ours, plain, rtol=0, atol=1e-9)


def test_without_a_state_it_starts_from_zeros() -> None:
    lstm, inputs = random_lstm(), torch.randn(5, INPUT_DIM).double()
    zeros = LstmState(torch.zeros(3, DIM).double(), torch.zeros(3, CELL).double())
    assert torch.equal(
        lstm(PackedVectors(inputs, [3, 2])).outputs,
        lstm(PackedVectors(inputs, [3, 2]), zeros).outputs,
    )


def test_one_reading_after_another_is_one_long_reading() -> None:
    lstm, inputs = random_lstm(), torch.randn(10, INPUT_DIM).double()
    whole = lstm(PackedVectors(inputs, [2] * 5))
    first = lstm(PackedVectors(inputs[:6], [2] * 3))
    second = lstm(PackedVectors(inputs[6:], [2] * 2), first.state)
    assert torch.allclose(torch.cat([first.outputs, second.outputs]), whole.outputs, atol=1e-12)
    assert torch.allclose(second.state.cell, whole.state.cell, atol=1e-12)


def test_one_cell_can_be_followed_on_paper() -> None:
    lstm = one_cell()
    # σ(i) = 1/2, tanh(j) = 1, σ(f + 1) = 1/2, σ(o) = 1: the cell holds 1/2, then 3/4.
    lstm.bias.copy_(torch.tensor([0.0, 100.0, -1.0, 100.0]))
    lstm.projection_weight.fill_(2.0)
    done = lstm(PackedVectors(torch.zeros(2, 1), [1, 1]))
    assert done.outputs[:, 0].tolist() == pytest.approx([2 * math.tanh(0.5), 2 * math.tanh(0.75)])
    assert done.state.cell.item() == pytest.approx(0.75)


def test_clips_bound_cells_and_outputs() -> None:
    lstm = one_cell(limit=0.5)
    lstm.bias.fill_(100.0)  # each step adds one to the cell, but for the clip
    lstm.projection_weight.fill_(4.0)
    bounded = lstm(PackedVectors(torch.zeros(3, 1), [1] * 3)).outputs
    assert bounded[:, 1].tolist() == pytest.approx([4 * math.tanh(0.5)] * 3)
    lstm.projection_weight.fill_(-40.0)
    assert lstm(PackedVectors(torch.zeros(3, 1), [1] * 3)).outputs[:, 1].tolist() == [-3.0] * 3


def test_without_clips_cells_and_outputs_grow() -> None:
    lstm = one_cell(limit=None, projection_clip=None)
    lstm.bias.fill_(100.0)
    lstm.projection_weight.fill_(40.0)
    outputs = lstm(PackedVectors(torch.zeros(5, 1), [1] * 5)).outputs[:, 0]
    assert outputs.tolist() == pytest.approx([40 * math.tanh(step) for step in (1, 2, 3, 4, 5)])


def test_the_released_models_clips_are_the_default() -> None:
    lstm = ProjectedLstm(INPUT_DIM, DIM, CELL)
    assert (lstm.cell_clip, lstm.projection_clip) == (3.0, 3.0)


def test_it_equals_torchs_lstm_where_nothing_is_clipped() -> None:
    dim = 5  # torch projects to fewer numbers than there are cells
    ours = random_lstm(dim, cell_clip=None, projection_clip=None)
    theirs = torch.nn.LSTM(INPUT_DIM, CELL, proj_size=dim, batch_first=True).double()

    def in_torchs_order(gates: torch.Tensor) -> torch.Tensor:
        i, j, f, o = gates.chunk(4)
        return torch.cat([i, f, j, o])

    theirs.load_state_dict(
        {
            "weight_ih_l0": in_torchs_order(ours.input_weight),
            "weight_hh_l0": in_torchs_order(ours.recurrent_weight),
            "bias_ih_l0": in_torchs_order(ours.bias),
            "bias_hh_l0": torch.tensor([0.0, 1.0, 0.0, 0.0]).repeat_interleave(CELL),
            "weight_hr_l0": ours.projection_weight,
        }
    )
    inputs, state = random_inputs(), random_state(dim)
    outputs, last = theirs(inputs, tuple(part.unsqueeze(0) for part in state))
    done = read_packed(ours, inputs, [POSITIONS] * BATCH, state)
    for one, other in zip(done, [outputs, *last], strict=True):
        assert torch.allclose(one, other, atol=1e-12)


def test_outputs_do_not_depend_on_what_follows() -> None:
    lstm, inputs, state = random_lstm(), random_inputs(), random_state()
    changed = inputs.clone()
    changed[:, 3:] += 1
    before = read_packed(lstm, inputs, [POSITIONS] * BATCH, state)
    after = read_packed(lstm, changed, [POSITIONS] * BATCH, state)
    assert torch.equal(before.outputs[:, :3], after.outputs[:, :3])
    assert (before.outputs[:, 3:] != after.outputs[:, 3:]).any(dim=-1).all()


def test_recurrent_dropout_drops_the_same_numbers_at_every_step() -> None:
    lstm = random_lstm(recurrent_dropout=0.5)
    outputs = read_packed(lstm, random_inputs(), [POSITIONS] * BATCH, random_state()).outputs
    is_dropped = outputs == 0
    assert torch.equal(is_dropped, is_dropped[:, :1].expand_as(is_dropped))
    assert 0.2 < is_dropped.double().mean() < 0.8
    assert len({tuple(row) for row in is_dropped[:, 0].tolist()}) == BATCH


@pytest.mark.parametrize("dim", DIMS_WITH_AND_WITHOUT_PROJECTION)
@pytest.mark.parametrize("is_frozen", [False, True])
def test_what_recurrent_dropout_keeps_is_scaled_and_read_at_the_next_step(
    dim: int, is_frozen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lstm = random_lstm(dim, recurrent_dropout=0.75).requires_grad_(not is_frozen)
    inputs, state = random_inputs(), random_state(dim)
    scale = (torch.arange(dim) % 4 == 0) * 4.0  # the same for every sentence
    monkeypatch.setattr(
        torch.nn.functional, "dropout", lambda ones, share: ones * scale * share / 0.75
    )
    expected = read_plainly(lstm, inputs, LENGTHS, state, dropout_mask=scale)
    for ours, plain in zip(read_packed(lstm, inputs, LENGTHS, state), expected, strict=True):
        assert torch.allclose(ours, plain, rtol=0, atol=1e-12)


def test_nothing_is_dropped_in_evaluation() -> None:
    lstm, inputs, state = random_lstm(recurrent_dropout=0.5).eval(), random_inputs(), random_state()
    expected = read_plainly(lstm, inputs, LENGTHS, state).outputs
    assert torch.allclose(read_packed(lstm, inputs, LENGTHS, state).outputs, expected, atol=1e-12)


@pytest.mark.parametrize("dim", DIMS_WITH_AND_WITHOUT_PROJECTION)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_frozen_weights_give_what_trained_ones_give(dim: int, dtype: str) -> None:
    lstm, inputs, state = random_lstm(dim).float(), random_inputs().float(), random_state(dim)
    state = LstmState(*(part.float() for part in state))
    MixedPrecision.set_everywhere(lstm, dtype)
    trained = read_packed(lstm, inputs, LENGTHS, state)
    frozen = read_packed(lstm.requires_grad_(False), inputs, LENGTHS, state)
    # Sums may be rounded in another order.
    atol = 1e-6 if dtype == "float32" else 0.03
    for one, other in zip(trained, frozen, strict=True):
        assert one.requires_grad and not other.requires_grad
        assert torch.allclose(one, other, atol=atol)


@pytest.mark.skipif(not native.READ, reason="there is no compiled run for this processor")
@pytest.mark.parametrize("is_frozen", [False, True])
@each_dtype_of(native.READ)
@pytest.mark.parametrize("dim, cell", [(64, 128), (50, 100)])
def test_with_gradients_it_runs_compiled(
    dim: int, cell: int, dtype: torch.dtype, is_frozen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: List[int] = []
    run_aligned = native.lstm_native_aligned

    def counted(run: LstmRun) -> LstmResult:
        runs.append(len(run.weights.projection_weight))
        return run_aligned(run)

    monkeypatch.setattr(native, "lstm_native_aligned", counted)
    torch.manual_seed(13)
    lstm = ProjectedLstm(24, dim, cell).requires_grad_(not is_frozen)
    MixedPrecision.set_everywhere(lstm, str(dtype).removeprefix("torch."))
    inputs = torch.randn(2 * 3, 24, requires_grad=True)
    outputs = lstm(PackedVectors(inputs, [3, 3])).outputs
    assert runs == [64]
    outputs.square().sum().backward()
    assert inputs.grad is not None and inputs.grad.any(dim=1).all()
    for parameter in lstm.parameters():
        assert is_frozen or (parameter.grad is not None and parameter.grad.any())


@each_change
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_change_of_frozen_weights_is_seen(change: Change, dtype: torch.dtype) -> None:
    lstm = ProjectedLstm(INPUT_DIM, DIM, CELL).to(dtype).requires_grad_(False)
    other = random_lstm().to(dtype).requires_grad_(False)
    inputs = torch.randn(POSITIONS, INPUT_DIM, dtype=dtype)
    before = lstm(PackedVectors(inputs, [3, 2])).outputs
    change(lstm, other)
    after = lstm(PackedVectors(inputs, [3, 2])).outputs
    assert torch.allclose(after, other(PackedVectors(inputs, [3, 2])).outputs)
    assert not torch.allclose(after, before, atol=0.01)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_change_of_the_frozen_bias_alone_is_seen(dtype: torch.dtype) -> None:
    lstm = random_lstm().to(dtype).requires_grad_(False)
    inputs = torch.randn(POSITIONS, INPUT_DIM, dtype=dtype)
    before = lstm(PackedVectors(inputs, [3, 2])).outputs
    lstm.bias.add_(1.0)
    after = lstm(PackedVectors(inputs, [3, 2])).outputs
    trained = copy.deepcopy(lstm).requires_grad_()(PackedVectors(inputs, [3, 2])).outputs
    assert torch.allclose(after, trained, atol=1e-6)
    assert not torch.allclose(after, before, atol=0.01)


def test_another_type_of_numbers_is_seen() -> None:
    lstm = random_lstm().requires_grad_(False)
    inputs = torch.randn(POSITIONS, INPUT_DIM).double()
    exact = lstm(PackedVectors(inputs, [3, 2])).outputs
    rounded = lstm.float()(PackedVectors(inputs.float(), [3, 2])).outputs
    assert rounded.dtype == torch.float32
    assert torch.allclose(rounded.double(), exact, atol=1e-5)
    assert lstm.double()(PackedVectors(inputs, [3, 2])).outputs.dtype == torch.float64


def test_copies_and_pickles_of_frozen_weights_are_independent() -> None:
    lstm = random_lstm().float().requires_grad_(False)
    inputs = torch.randn(POSITIONS, INPUT_DIM)
    before = lstm(PackedVectors(inputs, [3, 2])).outputs
    for twin in (copy.deepcopy(lstm), pickle.loads(pickle.dumps(lstm))):
        assert torch.equal(twin(PackedVectors(inputs, [3, 2])).outputs, before)
        twin.projection_weight.zero_()
        assert not twin(PackedVectors(inputs, [3, 2])).outputs.any()
    assert torch.equal(lstm(PackedVectors(inputs, [3, 2])).outputs, before)


def test_what_inference_mode_has_left_behind_serves_a_training_on_top() -> None:
    lstm = random_lstm().float().requires_grad_(False)
    inputs = torch.randn(POSITIONS, INPUT_DIM, requires_grad=True)
    with torch.inference_mode():
        expected = lstm(PackedVectors(inputs, [3, 2])).outputs
    scale = torch.ones((), requires_grad=True)
    outputs = lstm(PackedVectors(inputs.detach(), [3, 2])).outputs
    (outputs * scale).sum().backward()
    assert scale.grad is not None
    assert scale.grad.item() == pytest.approx(expected.sum().item(), rel=1e-5)
    lstm(PackedVectors(inputs, [3, 2])).outputs.sum().backward()
    assert inputs.grad is not None and inputs.grad.any(dim=1).all()


@pytest.mark.parametrize("dtype", EACH_INDEPENDENT_PRECISION)
def test_a_row_does_not_depend_on_how_many_rows_come_with_it(dtype: str) -> None:
    torch.manual_seed(13)
    # PyTorch takes the sigmoid of 32 numbers at once, and of those left over in another way.
    lstm = ProjectedLstm(37, 37, 64).requires_grad_(False)
    MixedPrecision.set_everywhere(lstm, dtype)
    inputs = torch.randn(70, 5, 37)
    state = LstmState(torch.randn(70, 37), torch.randn(70, 64))
    alone = read_packed(lstm, inputs[:1], [5], LstmState(*(part[:1] for part in state)))
    for batch in (2, 3, 8, 17, 70):
        some = LstmState(*(part[:batch] for part in state))
        done = read_packed(lstm, inputs[:batch], [5] * batch, some)
        for part, row in zip(done, alone, strict=True):
            assert torch.equal(part[:1], row)


def test_names_and_shapes_of_its_tensors_are_a_file_format() -> None:
    shapes: Dict[str, tuple] = {
        "input_weight": (4 * CELL, INPUT_DIM),
        "recurrent_weight": (4 * CELL, DIM),
        "bias": (4 * CELL,),
        "projection_weight": (DIM, CELL),
    }
    state = random_lstm().state_dict()
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == shapes
    assert set(random_lstm(CELL).state_dict()) == set(shapes) - {"projection_weight"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_that_move_leave_nothing_prepared_behind(dtype: torch.dtype) -> None:
    lstm = ProjectedLstm(DIM, DIM, CELL).to(dtype).requires_grad_(False)
    before = lstm(PackedVectors(torch.ones(2, DIM, dtype=dtype), [1, 1])).outputs
    prepared = (lstm._cache.products, lstm._cache.stack)
    assert any(kept._kept is not None for kept in prepared)
    lstm.to("meta")
    assert all(kept._kept is None for kept in prepared)
    assert before.any()
