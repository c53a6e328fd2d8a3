import math
from typing import List, Tuple

import pytest
import torch

from elmo_scratch.modules import ProjectedLstm

BATCH, POSITIONS, INPUT_DIM, DIM, CELL = 2, 5, 3, 11, 7


def random_lstm(**clips: float) -> ProjectedLstm:
    """In float64, with weights and biases large enough for the gates to differ."""
    torch.manual_seed(13)
    lstm = ProjectedLstm(INPUT_DIM, DIM, CELL, **clips).double()
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter)
    return lstm


def sigmoid(number: float) -> float:
    return 1 / (1 + math.exp(-number))


def clip(number: float, limit: float) -> float:
    return max(-limit, min(limit, number))


def dot(left: List[float], right: List[float]) -> float:
    return sum(one * other for one, other in zip(left, right, strict=True))


def read_by_the_formula(
    lstm: ProjectedLstm, sentence: List[List[float]], cell_clip: float, projection_clip: float
) -> Tuple[List[List[float]], int, int]:
    """The outputs for one sentence, number by number, and how often each of the clips bit."""
    from_input, from_hidden = lstm.input_weight.tolist(), lstm.recurrent_weight.tolist()
    bias, projection = lstm.bias.tolist(), lstm.projection_weight.tolist()
    hidden, cell = [0.0] * DIM, [0.0] * CELL
    outputs, cells_clipped, outputs_clipped = [], 0, 0
    for vector in sentence:
        gates = [
            dot(from_input[row], vector) + dot(from_hidden[row], hidden) + bias[row]
            for row in range(4 * CELL)
        ]
        opened = []
        for unit in range(CELL):
            i, j, f, o = (gates[gate * CELL + unit] for gate in range(4))
            memory = sigmoid(f + 1) * cell[unit] + sigmoid(i) * math.tanh(j)
            cells_clipped += abs(memory) > cell_clip
            cell[unit] = clip(memory, cell_clip)
            opened.append(sigmoid(o) * math.tanh(cell[unit]))
        projected = [dot(row, opened) for row in projection]
        outputs_clipped += sum(abs(number) > projection_clip for number in projected)
        hidden = [clip(number, projection_clip) for number in projected]
        outputs.append(hidden)
    return outputs, cells_clipped, outputs_clipped


def test_every_step_follows_the_formula_while_both_clips_bite() -> None:
    lstm = random_lstm(cell_clip=0.6, projection_clip=0.7)
    inputs = torch.randn(BATCH, POSITIONS, INPUT_DIM).double()
    outputs = lstm(inputs)
    for row in range(BATCH):
        expected, cells_clipped, outputs_clipped = read_by_the_formula(
            lstm, inputs[row].tolist(), cell_clip=0.6, projection_clip=0.7
        )
        assert 0 < cells_clipped < POSITIONS * CELL
        assert 0 < outputs_clipped < POSITIONS * DIM
        assert torch.allclose(outputs[row], torch.tensor(expected).double(), atol=1e-12)


def test_one_cell_can_be_followed_on_paper() -> None:
    lstm = ProjectedLstm(1, 1, 1)
    with torch.no_grad():
        for weight in (lstm.input_weight, lstm.recurrent_weight):
            weight.zero_()
        # σ(i) = 1/2, tanh(j) = 1, σ(f + 1) = 1/2, σ(o) = 1: the cell holds 1/2, then 3/4.
        lstm.bias.copy_(torch.tensor([0.0, 100.0, -1.0, 100.0]))
        lstm.projection_weight.fill_(2.0)
    outputs = lstm(torch.zeros(1, 2, 1)).flatten()
    assert outputs.tolist() == pytest.approx([2 * math.tanh(0.5), 2 * math.tanh(0.75)])


def test_clips_bound_cells_and_outputs() -> None:
    lstm = ProjectedLstm(1, 1, 1, cell_clip=0.5, projection_clip=3.0)
    with torch.no_grad():
        lstm.input_weight.zero_()
        # Each step adds one to the cell, which would hold 1, 2, ... but for the clip.
        lstm.bias.copy_(torch.tensor([100.0, 100.0, 100.0, 100.0]))
        lstm.projection_weight.fill_(4.0)
    assert lstm(torch.zeros(1, 3, 1)).flatten().tolist() == pytest.approx([4 * math.tanh(0.5)] * 3)
    with torch.no_grad():
        lstm.projection_weight.fill_(40.0)
    assert lstm(torch.zeros(1, 3, 1)).flatten().tolist() == [3.0] * 3


def test_without_clips_cells_and_outputs_grow() -> None:
    lstm = ProjectedLstm(1, 1, 1, cell_clip=None, projection_clip=None)
    with torch.no_grad():
        lstm.input_weight.zero_()
        lstm.recurrent_weight.zero_()
        lstm.bias.copy_(torch.tensor([100.0, 100.0, 100.0, 100.0]))
        lstm.projection_weight.fill_(40.0)
    outputs = lstm(torch.zeros(1, 5, 1)).flatten()
    assert outputs.tolist() == pytest.approx([40 * math.tanh(step) for step in (1, 2, 3, 4, 5)])


def test_the_released_models_clips_are_the_default() -> None:
    lstm = ProjectedLstm(INPUT_DIM, DIM, CELL)
    assert (lstm.cell_clip, lstm.projection_clip) == (3.0, 3.0)


def test_it_equals_torchs_lstm_where_nothing_is_clipped() -> None:
    dim = 5  # torch projects to fewer numbers than there are cells
    ours = ProjectedLstm(INPUT_DIM, dim, CELL, cell_clip=None, projection_clip=None).double()
    torch.nn.init.normal_(ours.bias)
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
    inputs = torch.randn(BATCH, POSITIONS, INPUT_DIM).double()
    assert torch.allclose(ours(inputs), theirs(inputs)[0], atol=1e-12)


@pytest.mark.parametrize("limit", [None, 0.5])
def test_gradients_are_those_of_finite_differences(limit: float) -> None:
    lstm = random_lstm(cell_clip=limit, projection_clip=limit)
    inputs = torch.randn(BATCH, 3, INPUT_DIM).double().requires_grad_()
    names, weights = zip(*lstm.named_parameters(), strict=True)

    def read(inputs: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(lstm, dict(zip(names, weights, strict=True)), (inputs,))

    assert torch.autograd.gradcheck(read, (inputs, *weights))


def test_outputs_do_not_depend_on_what_follows() -> None:
    lstm = random_lstm()
    inputs = torch.randn(BATCH, POSITIONS, INPUT_DIM).double()
    changed = inputs.clone()
    changed[:, 3:] += 1
    before, after = lstm(inputs), lstm(changed)
    assert torch.equal(before[:, :3], after[:, :3])
    assert (before[:, 3:] != after[:, 3:]).any(dim=-1).all()


def test_each_reading_begins_at_zeros() -> None:
    lstm = random_lstm()
    inputs = torch.randn(BATCH, POSITIONS, INPUT_DIM).double()
    assert torch.equal(lstm(inputs), lstm(inputs))


def test_names_and_shapes_of_its_tensors_are_a_file_format() -> None:
    shapes = {name: tuple(tensor.shape) for name, tensor in random_lstm().state_dict().items()}
    assert shapes == {
        "input_weight": (4 * CELL, INPUT_DIM),
        "recurrent_weight": (4 * CELL, DIM),
        "bias": (4 * CELL,),
        "projection_weight": (DIM, CELL),
    }
