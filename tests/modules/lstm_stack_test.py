import copy
import pickle
from typing import Any, Callable, Dict, List

import pytest
import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from elmo_scratch.kernels import MixedPrecision
from elmo_scratch.kernels.lstm.stack import READ_LAYERS
from elmo_scratch.modules import LstmStack, LstmState
from elmo_scratch.modules.sequences import PackedVectors
from tests.kernels.compiled_dtypes import each_dtype_of
from tests.kernels.frozen_weights import Change, each_change

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


def frozen_stack(seed: int = 13) -> LstmStack:
    torch.manual_seed(seed)
    stack = LstmStack(DIM, 2, CELL, cell_clip=0.6, projection_clip=0.6)
    for number in range(2):
        torch.nn.init.normal_(stack.get_parameter(f"layers.{number}.bias"))
    return stack.requires_grad_(False)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_frozen_layers_give_what_trained_ones_give(dtype: str) -> None:
    stack = frozen_stack()
    MixedPrecision.set_everywhere(stack, dtype)
    inputs, state = PackedVectors(torch.randn(READ, DIM), BATCH_SIZES), random_state(2)
    frozen, trained = stack(inputs, state), stack.requires_grad_()(inputs, state)
    # Sums may be rounded in another order.
    atol = 1e-6 if dtype == "float32" else 0.03
    for one, other in zip([*frozen.layers, *frozen.state], [*trained.layers, *trained.state]):
        assert other.requires_grad and not one.requires_grad
        assert one.shape == other.shape and torch.allclose(one, other, atol=atol)


@each_change
def test_a_change_of_frozen_weights_is_seen(change: Change) -> None:
    stack, other = frozen_stack(), frozen_stack(17)
    inputs, state = PackedVectors(torch.randn(READ, DIM), BATCH_SIZES), random_state(2)
    before = stack(inputs, state).layers[1]
    change(stack, other)
    after = stack(inputs, state).layers[1]
    assert torch.equal(after, other(inputs, state).layers[1])
    assert not torch.allclose(after, before, atol=0.01)


def test_copies_and_pickles_of_frozen_layers_are_independent() -> None:
    stack, state = frozen_stack(), random_state(2)
    inputs = PackedVectors(torch.randn(READ, DIM), BATCH_SIZES)
    before = stack(inputs, state).layers[0]
    for twin in (copy.deepcopy(stack), pickle.loads(pickle.dumps(stack))):
        assert torch.equal(twin(inputs, state).layers[0], before)
        twin.get_parameter("layers.0.projection_weight").zero_()
        assert not twin(inputs, state).layers[0].any()
    assert torch.equal(stack(inputs, state).layers[0], before)


@pytest.mark.skipif(not READ_LAYERS, reason="there is no compiled run for this processor")
def test_layers_that_move_leave_nothing_prepared_behind() -> None:
    stack = frozen_stack()
    stack(PackedVectors(torch.randn(READ, DIM), BATCH_SIZES), random_state(2))
    assert stack._cache._kept is not None
    stack.to("meta")
    assert stack._cache._kept is None


def hook(layer: torch.nn.Module, seen: List[torch.nn.Module]) -> Any:
    return layer.register_forward_hook(lambda module, *_: seen.append(module))


def pre_hook(layer: torch.nn.Module, seen: List[torch.nn.Module]) -> Any:
    return layer.register_forward_pre_hook(lambda module, *_: seen.append(module))


def hook_on_all(layer: torch.nn.Module, seen: List[torch.nn.Module]) -> Any:
    return register_module_forward_hook(lambda module, *_: seen.append(module))


def pre_hook_on_all(layer: torch.nn.Module, seen: List[torch.nn.Module]) -> Any:
    return register_module_forward_pre_hook(lambda module, *_: seen.append(module))


def replaced(layer: torch.nn.Module, seen: List[torch.nn.Module]) -> Any:
    forward = layer.forward
    layer.forward = lambda *given: seen.append(layer) or forward(*given)  # type: ignore
    return None


@pytest.mark.parametrize("watch", [hook, pre_hook, hook_on_all, pre_hook_on_all, replaced])
def test_who_looks_at_a_layer_sees_it_though_it_is_frozen(watch: Callable[..., Any]) -> None:
    stack, state = frozen_stack(), random_state(2)
    inputs = PackedVectors(torch.randn(READ, DIM), BATCH_SIZES)
    unwatched = stack(inputs, state).layers
    seen: List[torch.nn.Module] = []
    handle = watch(stack.layers[1], seen)
    try:
        watched = stack(inputs, state).layers
    finally:
        if handle is not None:
            handle.remove()
    assert stack.layers[1] in seen
    assert all(torch.allclose(*pair, atol=1e-6) for pair in zip(watched, unwatched))


@pytest.mark.parametrize(
    "settings",
    [
        {"dropout": 0.5},
        {"dropout": 0.5, "locked_dropout": True},
        {"recurrent_dropout": 0.5},
        {"recurrent_weight_dropout": 0.5},
    ],
)
def test_frozen_layers_drop_in_training(settings: Dict[str, Any]) -> None:
    torch.manual_seed(13)
    stack, state = LstmStack(DIM, 2, CELL, **settings).requires_grad_(False), random_state(2)
    inputs = PackedVectors(torch.randn(READ, DIM), BATCH_SIZES)
    one, other = (stack(inputs, state).layers[1] for _ in range(2))
    assert not torch.allclose(one, other, atol=1e-3)
    whole = stack.eval()(inputs, state).layers[1]
    assert torch.equal(stack(inputs, state).layers[1], whole)


@pytest.mark.skipif(torch.bfloat16 not in READ_LAYERS, reason="no instructions for bfloat16 here")
def test_frozen_layers_may_differ_in_precision() -> None:
    stack, state = frozen_stack(), random_state(2)
    inputs = PackedVectors(torch.randn(READ, DIM), BATCH_SIZES)
    exact = stack(inputs, state).layers
    MixedPrecision.set_everywhere(stack.layers[1], "bfloat16")
    first, second = stack(inputs, state).layers
    assert torch.allclose(first, exact[0], atol=1e-6)
    assert not torch.allclose(second, exact[1], atol=1e-5)


def test_frozen_layers_may_clip_otherwise_each() -> None:
    stack, state = frozen_stack(), random_state(2)
    inputs = PackedVectors(torch.randn(READ, DIM), BATCH_SIZES)
    whole = stack(inputs, state).layers
    stack.get_submodule("layers.1").projection_clip = 0.01  # type: ignore[assignment]
    first, second = stack(inputs, state).layers
    assert torch.allclose(first, whole[0], atol=1e-6)
    assert float((second - first).abs().max()) <= 0.01 + 1e-6 < float(whole[1].abs().max())


@pytest.mark.skipif(not READ_LAYERS, reason="there is no compiled run for this processor")
@each_dtype_of(READ_LAYERS)
def test_a_sentence_does_not_depend_on_how_many_come_with_it(dtype: torch.dtype) -> None:
    torch.manual_seed(13)
    stack = LstmStack(37, 2, 64).requires_grad_(False)
    MixedPrecision.set_everywhere(stack, str(dtype).removeprefix("torch."))
    inputs = torch.randn(5, 70, 37)
    state = LstmState(torch.randn(2, 70, 37), torch.randn(2, 70, 64))

    def read(batch: int) -> List[torch.Tensor]:
        some = LstmState(*(part[:, :batch] for part in state))
        done = stack(PackedVectors(inputs[:, :batch].flatten(0, 1), [batch] * 5), some)
        laid = [layer.view(5, batch, 37).transpose(0, 1) for layer in done.layers]
        return [*laid, *(part.transpose(0, 1) for part in done.state)]

    alone = read(1)
    for batch in (2, 3, 8, 17, 70):
        for part, row in zip(read(batch), alone, strict=True):
            assert torch.equal(part[:1], row)


def test_names_of_its_tensors_are_a_file_format() -> None:
    assert {name.rpartition(".")[0] for name in LstmStack(DIM, 2, CELL).state_dict()} == {
        "layers.0",
        "layers.1",
    }
