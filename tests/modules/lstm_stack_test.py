from typing import List

import pytest
import torch

from elmo_scratch.modules import LstmStack, LstmState
from elmo_scratch.modules.sequences import PackedVectors

BATCH_SIZES = [3, 2, 2]
READ, DIM, CELL = 7, 5, 11


def random_state(layers: int) -> LstmState:
    return LstmState(
        torch.randn(layers, BATCH_SIZES[0], DIM), torch.randn(layers, BATCH_SIZES[0], CELL)
    )


def test_the_first_layer_has_no_residual_connection() -> None:
    stack = LstmStack(DIM, 2, CELL)
    inputs = torch.randn(READ, DIM)
    first = stack(PackedVectors(inputs, BATCH_SIZES)).layers[0]
    assert torch.equal(first, stack.layers[0](PackedVectors(inputs, BATCH_SIZES)).outputs)


def test_from_the_second_layer_on_a_layers_input_is_added_to_its_output() -> None:
    stack = LstmStack(DIM, 3, CELL)
    first, second, third = stack(PackedVectors(torch.randn(READ, DIM), BATCH_SIZES)).layers
    assert torch.allclose(
        second, stack.layers[1](PackedVectors(first, BATCH_SIZES)).outputs + first
    )
    assert torch.allclose(
        third, stack.layers[2](PackedVectors(second, BATCH_SIZES)).outputs + second
    )


def test_without_skip_connections_nothing_is_added() -> None:
    stack = LstmStack(DIM, 3, CELL, use_skip_connections=False)
    first, second, third = stack(PackedVectors(torch.randn(READ, DIM), BATCH_SIZES)).layers
    assert torch.equal(second, stack.layers[1](PackedVectors(first, BATCH_SIZES)).outputs)
    assert torch.equal(third, stack.layers[2](PackedVectors(second, BATCH_SIZES)).outputs)


def test_a_layer_that_outputs_zeros_hands_its_input_on() -> None:
    stack = LstmStack(DIM, 2, CELL)
    torch.nn.init.zeros_(stack.get_parameter("layers.1.projection_weight"))
    first, second = stack(PackedVectors(torch.randn(READ, DIM), BATCH_SIZES)).layers
    assert torch.equal(first, second)
    assert first.abs().sum() > 0


def test_each_layer_starts_from_its_own_state_and_leaves_its_own() -> None:
    stack = LstmStack(DIM, 2, CELL)
    inputs, state = torch.randn(READ, DIM), random_state(2)
    done = stack(PackedVectors(inputs, BATCH_SIZES), state)
    first = stack.layers[0](
        PackedVectors(inputs, BATCH_SIZES), LstmState(*(part[0] for part in state))
    )
    second = stack.layers[1](
        PackedVectors(first.outputs, BATCH_SIZES), LstmState(*(part[1] for part in state))
    )
    assert torch.equal(done.layers[1], second.outputs + first.outputs)
    for number, expected in enumerate([first.state, second.state]):
        assert torch.equal(done.state.hidden[number], expected.hidden)
        assert torch.equal(done.state.cell[number], expected.cell)


def test_the_state_is_what_the_layers_put_out_before_the_input_is_added() -> None:
    stack = LstmStack(DIM, 2, CELL)
    done = stack(PackedVectors(torch.randn(READ, DIM), BATCH_SIZES))
    last = [5, 6, 2]  # where each of the three sentences is read last
    unadded = done.layers[1] - done.layers[0]
    assert torch.allclose(done.state.hidden[1], unadded[last], atol=1e-6)


def test_dropout_drops_the_inputs_of_every_layer_in_training() -> None:
    torch.manual_seed(13)
    stack = LstmStack(DIM, 2, CELL, dropout=0.5)
    read: List[torch.Tensor] = []
    for layer in stack.layers:
        layer.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].vectors))
    first, second = stack(PackedVectors(torch.ones(READ, DIM), BATCH_SIZES)).layers
    assert sorted(set(read[0].flatten().tolist())) == [0.0, 2.0]
    kept = read[1] != 0
    assert not kept.all()
    assert torch.allclose(read[1][kept], 2 * first[kept])
    # The residual connection adds what the layer has read, as `bilm-tf` does.
    assert torch.allclose(
        second, stack.layers[1](PackedVectors(read[1], BATCH_SIZES)).outputs + read[1]
    )


def test_dropout_can_be_in_training_alone() -> None:
    # As Monte Carlo dropout wants it.
    stack = LstmStack(DIM, 2, CELL, dropout=0.5).eval()
    inputs = PackedVectors(torch.ones(READ, DIM), BATCH_SIZES)
    whole = stack(inputs).layers[0]
    stack.dropout.train()
    assert not torch.equal(stack(inputs).layers[0], whole)


def test_nothing_is_dropped_in_evaluation() -> None:
    stack = LstmStack(DIM, 2, CELL, dropout=0.5, recurrent_dropout=0.5).eval()
    inputs = torch.randn(READ, DIM)
    first = stack.layers[0](PackedVectors(inputs, BATCH_SIZES)).outputs
    second = stack.layers[1](PackedVectors(first, BATCH_SIZES)).outputs + first
    for one, other in zip(
        stack(PackedVectors(inputs, BATCH_SIZES)).layers, [first, second], strict=True
    ):
        assert torch.equal(one, other)


@pytest.mark.parametrize("dim", [DIM, CELL])
def test_settings_reach_every_layer(dim: int) -> None:
    stack = LstmStack(dim, 2, CELL, cell_clip=0.25, projection_clip=None, recurrent_dropout=0.125)
    for layer in stack.layers:
        assert (layer.cell_clip, layer.projection_clip) == (0.25, None)
        assert layer.recurrent_dropout == 0.125
        assert (layer.projection_weight is None) == (dim == CELL)


def test_names_of_its_tensors_are_a_file_format() -> None:
    assert {name.rpartition(".")[0] for name in LstmStack(DIM, 2, CELL).state_dict()} == {
        "layers.0",
        "layers.1",
    }
