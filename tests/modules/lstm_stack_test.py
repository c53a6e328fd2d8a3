from typing import List

import torch

from elmo_scratch.modules import LstmStack

BATCH, POSITIONS, DIM, CELL = 2, 5, 3, 7


def test_the_first_layer_has_no_residual_connection() -> None:
    stack = LstmStack(DIM, 2, CELL)
    inputs = torch.randn(BATCH, POSITIONS, DIM)
    assert torch.equal(stack(inputs)[0], stack.layers[0](inputs))


def test_from_the_second_layer_on_a_layers_input_is_added_to_its_output() -> None:
    stack = LstmStack(DIM, 3, CELL)
    first, second, third = stack(torch.randn(BATCH, POSITIONS, DIM))
    assert torch.allclose(second, stack.layers[1](first) + first)
    assert torch.allclose(third, stack.layers[2](second) + second)


def test_a_layer_that_outputs_zeros_hands_its_input_on() -> None:
    stack = LstmStack(DIM, 2, CELL)
    torch.nn.init.zeros_(stack.get_parameter("layers.1.projection_weight"))
    first, second = stack(torch.randn(BATCH, POSITIONS, DIM))
    assert torch.equal(first, second)
    assert first.abs().sum() > 0


def test_dropout_drops_the_inputs_of_every_layer_in_training() -> None:
    stack = LstmStack(DIM, 2, CELL, dropout=0.5)
    read: List[torch.Tensor] = []
    for layer in stack.layers:
        layer.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    inputs = torch.ones(BATCH, POSITIONS, DIM)
    first, second = stack(inputs)
    assert sorted(set(read[0].flatten().tolist())) == [0.0, 2.0]
    kept = read[1] != 0
    assert not kept.all()
    assert torch.allclose(read[1][kept], 2 * first[kept])
    # The residual connection adds what the layer has read, as `bilm-tf` does.
    assert torch.allclose(second, stack.layers[1](read[1]) + read[1])


def test_nothing_is_dropped_in_evaluation() -> None:
    stack = LstmStack(DIM, 2, CELL, dropout=0.5).eval()
    inputs = torch.randn(BATCH, POSITIONS, DIM)
    stack.dropout.p = 0.0
    undropped = stack(inputs)
    stack.dropout.p = 0.5
    assert all(torch.equal(one, other) for one, other in zip(stack(inputs), undropped, strict=True))


def test_clips_reach_every_layer() -> None:
    stack = LstmStack(DIM, 2, CELL, cell_clip=0.25, projection_clip=None)
    assert [(layer.cell_clip, layer.projection_clip) for layer in stack.layers] == [
        (0.25, None),
        (0.25, None),
    ]


def test_names_of_its_tensors_are_a_file_format() -> None:
    assert {name.rpartition(".")[0] for name in LstmStack(DIM, 2, CELL).state_dict()} == {
        "layers.0",
        "layers.1",
    }
