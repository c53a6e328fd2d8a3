from typing import Any, List, Optional, Sequence

import pytest
import torch

from elmo_scratch.kernels import LstmState, LstmWeights
from elmo_scratch.kernels.lstm import stack
from elmo_scratch.kernels.lstm.run import Clips
from elmo_scratch.kernels.lstm.stack import StackCache, StackRun, can_read_stack, read_stack
from tests.kernels.compiled_dtypes import each_dtype_of, needs_bfloat16
from tests.kernels.lstm.random_run import positions_of, reference

pytestmark = pytest.mark.skipif(
    not stack.READ_LAYERS, reason="there is no compiled run for this processor"
)

each_dtype = each_dtype_of(stack.READ_LAYERS)
each_size = pytest.mark.parametrize("dim, cells", [(64, 128), (50, 100), (256, 2048)])
BATCH_SIZES = [20, 20, 17, 16, 5, 1, 1]


def random_stack(
    batch_sizes: Sequence[int],
    dtype: torch.dtype = torch.float32,
    clip: Optional[float] = 0.6,
    dim: int = 64,
    cells: int = 128,
    layers: int = 3,
    adds_inputs: bool = True,
) -> StackRun:
    """In float32."""
    torch.manual_seed(13)
    shapes = [(4 * cells, dim), (4 * cells, dim), (dim, cells)]
    batch = batch_sizes[0]
    return StackRun(
        [
            LstmWeights(*(torch.randn(shape).mul(shape[1] ** -0.5) for shape in shapes))
            for _ in range(layers)
        ],
        [torch.randn(4 * cells) for _ in range(layers)],
        dtype,
        torch.randn(sum(batch_sizes), dim),
        batch_sizes,
        LstmState(torch.randn(layers, batch, dim), torch.randn(layers, batch, cells)),
        Clips(clip, clip),
        adds_inputs,
    )


def read(run: StackRun) -> List[torch.Tensor]:
    assert can_read_stack(run)
    done = read_stack(run, StackCache())
    return [torch.stack(done.outputs), *done.state]


def layer_by_layer(run: StackRun) -> List[torch.Tensor]:
    """By PyTorch's products."""
    inputs, outputs, states = run.inputs, [], []
    for number in range(len(run.weights)):
        done = reference(run.layer(number)._replace(inputs=inputs))
        is_skipped = run.adds_inputs and number > 0
        inputs = done.outputs + inputs if is_skipped else done.outputs
        outputs.append(inputs)
        states.append(done.state)
    return [torch.stack(outputs), *map(torch.stack, zip(*states))]


def of_sentences(run: StackRun, start: int, end: int) -> StackRun:
    """The same with some of its sentences alone."""
    return run._replace(
        inputs=run.inputs[positions_of(run.layer(0), start, end)],
        batch_sizes=[min(active, end) - start for active in run.batch_sizes if active > start],
        state=LstmState(*(part[:, start:end] for part in run.state)),
    )


@pytest.mark.usefixtures("each_number_of_threads")
@pytest.mark.parametrize("clip, adds_inputs", [(None, False), (0.6, True)])
@pytest.mark.parametrize("batch_sizes", [[1] * 5, [16] * 3, BATCH_SIZES])
@each_size
def test_in_float32_it_is_the_layers_one_by_one(
    dim: int, cells: int, batch_sizes: List[int], clip: Optional[float], adds_inputs: bool
) -> None:
    run = random_stack(batch_sizes, torch.float32, clip, dim, cells, adds_inputs=adds_inputs)
    for ours, theirs in zip(read(run), layer_by_layer(run), strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@needs_bfloat16(stack.READ_LAYERS)
@each_size
def test_in_bfloat16_it_points_where_the_exact_run_does(dim: int, cells: int) -> None:
    run = random_stack(BATCH_SIZES, torch.bfloat16, None, dim, cells)
    exact = read(run._replace(dtype=torch.float32))
    for ours, theirs in zip(read(run), exact, strict=True):
        assert ours.dtype == torch.float32 and not torch.equal(ours, theirs)
        assert torch.cosine_similarity(ours.flatten(), theirs.flatten(), dim=0) >= 0.9995


@each_dtype
@each_size
@pytest.mark.parametrize("at_once", [1, 21, 37])
def test_how_many_positions_go_together_changes_nothing(
    at_once: int, dim: int, cells: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = random_stack(BATCH_SIZES, dtype, 0.6, dim, cells)
    together = read(run)
    padded_cells = cells + -cells % 32
    monkeypatch.setattr(stack, "GATES_AT_ONCE", at_once * 4 * padded_cells)
    assert all(torch.equal(*pair) for pair in zip(read(run), together, strict=True))


@each_dtype
@each_size
def test_no_sentence_depends_on_others_to_the_bit(
    dim: int, cells: int, dtype: torch.dtype, each_number_of_threads: None
) -> None:
    run = random_stack([40, 40, 31, 9], dtype, 0.6, dim, cells)
    outputs, *state = read(run)
    # Alone, and with too few others for all threads.
    for start, end in [(0, 1), (37, 38), (3, 8), (0, 16)]:
        some, *some_state = read(of_sentences(run, start, end))
        assert torch.equal(some, outputs[:, positions_of(run.layer(0), start, end)])
        for ours, whole in zip(some_state, state, strict=True):
            assert torch.equal(ours, whole[:, start:end])


@each_dtype
def test_sentences_without_a_position_keep_their_state(dtype: torch.dtype) -> None:
    run = random_stack([20, 18, 18], dtype)
    fewer = run._replace(batch_sizes=[18, 18, 1], inputs=run.inputs[:37])
    outputs, *state = read(fewer)
    alone, *some_state = read(of_sentences(fewer, 0, 18))
    assert torch.equal(outputs, alone)
    for ours, part, before in zip(state, some_state, run.state, strict=True):
        assert torch.equal(ours[:, :18], part) and torch.equal(ours[:, 18:], before[:, 18:])


def test_what_it_starts_from_is_left_as_it_was() -> None:
    run = random_stack([3, 2])
    kept = [part.clone() for part in (run.inputs, *run.state)]
    read(run)
    for before, after in zip(kept, (run.inputs, *run.state), strict=True):
        assert torch.equal(before, after)


def test_frozen_weights_are_packed_once_and_again_after_a_change() -> None:
    run, cache = random_stack([3, 2]), StackCache()

    def last_layer() -> torch.Tensor:
        return read_stack(run, cache).outputs[-1]

    first, kept = last_layer(), cache._kept
    assert kept is not None and torch.equal(last_layer(), first) and cache._kept is kept
    for parameter in run.parameters():
        before = last_layer()
        parameter.mul_(1.5)
        assert not torch.equal(last_layer(), before)
    assert torch.equal(last_layer(), read(run)[0][-1])


@pytest.mark.parametrize("dim", [50, 64])
def test_one_layers_outputs_may_be_overwritten(dim: int) -> None:
    run = random_stack([3, 2], dim=dim)
    outputs = read_stack(run, StackCache()).outputs
    others = [layer.clone() for layer in outputs[1:]]
    outputs[0].mul_(torch.nn.Parameter(torch.tensor(2.0)))
    assert all(map(torch.equal, outputs[1:], others))
    assert all(layer.is_contiguous() for layer in outputs)


def test_what_wants_gradients_is_left_to_others() -> None:
    run = random_stack([3, 2])
    for part in (run.inputs, run.state.cell, run.weights[1].input_weight, run.biases[2]):
        part.requires_grad_()
        assert not can_read_stack(run)
        with torch.no_grad():
            assert can_read_stack(run)
        part.requires_grad_(False)


def without(run: StackRun, **changes: Any) -> StackRun:
    """The run with other matrices in its second layer."""
    first, second, *rest = run.weights
    return run._replace(weights=[first, second._replace(**changes), *rest])


@each_dtype
def test_what_does_not_fit_is_left_to_others(dtype: torch.dtype) -> None:
    run = random_stack([9, 9], dtype)
    hidden, cell = run.state
    weights = run.weights[1]
    unfit = [
        run._replace(dtype=torch.float64),
        run._replace(batch_sizes=[]),
        run._replace(batch_sizes=[8, 10]),
        run._replace(batch_sizes=[18, 0]),
        run._replace(batch_sizes=[10, 8]),
        run._replace(inputs=run.inputs[:3]),
        run._replace(inputs=run.inputs[:, :3]),
        run._replace(inputs=run.inputs.double()),
        run._replace(inputs=run.inputs.to("meta")),
        run._replace(state=LstmState(hidden[:, :3], cell)),
        run._replace(state=LstmState(hidden[:2], cell)),
        run._replace(state=LstmState(hidden[0], cell[0])),
        run._replace(state=LstmState(hidden, cell[..., :64])),
        run._replace(state=LstmState(hidden.double(), cell)),
        run._replace(biases=[*run.biases[:2], run.biases[2][:128]]),
        run._replace(weights=[], biases=[], state=LstmState(hidden[:0], cell[:0])),
        without(run, projection_weight=torch.zeros(0, 128)),
        without(run, input_weight=weights.input_weight[:, :32]),
        without(run, recurrent_weight=weights.recurrent_weight[:128]),
    ]
    assert can_read_stack(run) and not any(map(can_read_stack, unfit))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not can_read_stack(run)
