import math
from typing import List, NamedTuple, Optional

import pytest
import torch

from elmo_scratch.kernels import onednn
from elmo_scratch.kernels.library import INSTRUCTIONS, Instructions
from elmo_scratch.kernels.lstm import native
from elmo_scratch.kernels.lstm.native import can_run_native, lstm_native_aligned
from elmo_scratch.kernels.lstm.run import Clips, LstmWeights
from elmo_scratch.modules import LstmState
from tests.kernels.compiled_dtypes import each_dtype_of, needs_bfloat16
from tests.kernels.frozen_weights import needs_independent_rows
from tests.kernels.lstm.random_run import (
    CELLS,
    DIM,
    Incoming,
    back,
    of_sentences,
    positions_of,
    random_gradients,
    random_run,
    reference,
    there_and_back,
)


class Sizes(NamedTuple):
    """The sizes of an LSTM."""

    dim: int
    cells: int


pytestmark = pytest.mark.skipif(
    not native.READ, reason="there is no compiled run for this processor"
)

each_dtype = each_dtype_of(native.READ)
each_batch = pytest.mark.parametrize(
    "batch_sizes", [[16] * 3, [33, 33, 32, 20, 17, 16, 5, 1], [70, 69, 3], [7, 7], [131, 64]]
)
"""Fewer, as many and more sentences than go together; of equal and of different lengths."""

each_size = pytest.mark.parametrize(
    "sizes",
    [
        pytest.param(Sizes(DIM, CELLS), id="small"),
        pytest.param(Sizes(32, 96), id="less than a panel"),
        pytest.param(Sizes(160, 2080), id="large, less than a panel"),
        pytest.param(Sizes(256, 2048), id="large"),
        pytest.param(Sizes(64, 8192), id="few outputs"),
    ],
)
"""Small weights are read by each thread for its own sentences, large ones by all together."""


WITHOUT_TILES = pytest.param(
    "without tiles",
    marks=pytest.mark.skipif(not native.HAS_TILES, reason="this processor has no tiles"),
)


@pytest.fixture(params=["as it is", WITHOUT_TILES])
def each_processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """This one, and one without tiles."""
    if request.param == "without tiles":
        monkeypatch.setattr(native, "HAS_TILES", False)


@pytest.mark.usefixtures("each_number_of_threads")
@pytest.mark.parametrize("clip, dropout", [(None, 0.0), (0.6, 0.0), (0.6, 0.4)])
@each_batch
@each_size
def test_in_float32_it_is_the_run_step_by_step(
    sizes: Sizes, batch_sizes: List[int], clip: Optional[float], dropout: float
) -> None:
    if sizes.cells > 4096:
        # Of so many numbers some lie so near a bound that only one of both ways clips them.
        clip = None
    run = random_run(batch_sizes, torch.float32, clip, dropout, *sizes)
    found = there_and_back(run, lstm_native_aligned(run))
    for ours, theirs in zip(found, there_and_back(run, reference(run)), strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        assert ours.any()
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * theirs.abs().max().item())


@needs_bfloat16(native.READ)
@pytest.mark.usefixtures("each_number_of_threads", "each_processor")
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@each_batch
@each_size
def test_in_bfloat16_it_points_where_the_exact_run_does(
    sizes: Sizes, batch_sizes: List[int], dropout: float
) -> None:
    # Without clips, at which what is rounded and what isn't would part.
    run = random_run(batch_sizes, torch.bfloat16, None, dropout, *sizes)
    exact = run._replace(dtype=torch.float32)
    found = there_and_back(run, lstm_native_aligned(run))
    for ours, theirs in zip(found, there_and_back(exact, lstm_native_aligned(exact)), strict=True):
        ours = ours.float()
        assert not torch.equal(ours, theirs)
        assert torch.cosine_similarity(ours.flatten(), theirs.flatten(), dim=0) >= 0.9995
        assert (ours.norm() / theirs.norm()).item() == pytest.approx(1.0, abs=0.01)


@needs_independent_rows
@pytest.mark.usefixtures("each_number_of_threads", "each_processor")
@each_dtype
@each_size
def test_no_sentence_depends_on_others_to_the_bit(sizes: Sizes, dtype: torch.dtype) -> None:
    run = random_run([70, 70, 66, 41, 40, 9], dtype, 0.6, 0.3, *sizes)
    done, incoming = lstm_native_aligned(run), random_gradients(run)
    gradients = back(run, done, incoming)
    for start, end in [(0, 70), (0, 16), (3, 40), (37, 38), (54, 70)]:
        some, rows = of_sentences(run, start, end), positions_of(run, start, end)
        own_state = LstmState(*(part[start:end] for part in incoming.state))
        alone = lstm_native_aligned(some)
        own = back(some, alone, Incoming(incoming.outputs[rows], own_state))
        assert torch.equal(alone.outputs, done.outputs[rows])
        assert torch.equal(own.cell_outputs, gradients.cell_outputs[rows])
        # Without tiles PyTorch multiplies the inputs in bfloat16, and promises nothing.
        if dtype == torch.float32 or INSTRUCTIONS == Instructions.TILES:
            assert torch.equal(own.gates, gradients.gates[rows])
            assert torch.equal(own.projected, gradients.projected[rows])
            pairs = [*zip(alone.state, done.state), *zip(own.state, gradients.state)]
            for ours, whole in pairs:
                assert torch.equal(ours, whole[start:end])


@each_dtype
def test_it_goes_back_as_often_as_one_likes(dtype: torch.dtype) -> None:
    run = random_run([20, 18, 18], dtype)
    done = lstm_native_aligned(run)
    kept = [tensor.clone() for tensor in done.kept]
    first, again = there_and_back(run, done), there_and_back(run, done)
    assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
    assert all(torch.equal(*pair) for pair in zip(kept, done.kept, strict=True))


@each_dtype
def test_what_others_kept_in_their_own_way_is_read_too(dtype: torch.dtype) -> None:
    run = random_run([20, 18, 18], dtype, dropout=0.3)
    done, incoming = lstm_native_aligned(run), random_gradients(run)

    assert run.recurrent_dropout_mask is not None

    def turned(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.double().t().contiguous().t()

    other_run = run._replace(
        weights=LstmWeights(*map(turned, run.weights)),
        state=LstmState(*map(turned, run.state)),
        recurrent_dropout_mask=turned(run.recurrent_dropout_mask),
    )
    other = done._replace(kept=[turned(tensor) for tensor in done.kept])
    found, expected = back(other_run, other, incoming), back(run, done, incoming)
    assert all(torch.equal(*pair) for pair in zip(found[:3], expected[:3], strict=True))
    assert all(torch.equal(*pair) for pair in zip(found.state, expected.state, strict=True))


@each_dtype
def test_what_is_no_number_stays_with_its_sentence(dtype: torch.dtype) -> None:
    run = random_run([20] * 3, dtype)
    run.inputs[7] = math.nan
    done = lstm_native_aligned(run)
    is_lost = done.outputs.isnan().view(3, 20, -1).any(dim=2)
    assert is_lost.nonzero().tolist() == [[0, 7], [1, 7], [2, 7]]
    assert done.state.cell.isnan().any(dim=1).nonzero().tolist() == [[7]]


def test_states_may_lie_scattered_in_memory() -> None:
    run = random_run([20] * 3, dropout=0.3)
    scattered = run._replace(
        state=LstmState(*(part.t().contiguous().t() for part in run.state)),
        bias=run.bias.repeat_interleave(2)[::2],
        inputs=run.inputs.t().contiguous().t(),
        weights=LstmWeights(*(weight.t().contiguous().t() for weight in run.weights)),
    )
    found, expected = (lstm_native_aligned(one).outputs for one in (scattered, run))
    assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("by_onednn", [False, True])
def test_many_inputs_may_lie_scattered_too(
    by_onednn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by_onednn:
        monkeypatch.setattr(onednn, "can_multiply", lambda *_: False)
    run = random_run([3 * CELLS] * 2)
    scattered = run._replace(inputs=run.inputs.t().contiguous().t())
    found, expected = (there_and_back(one, lstm_native_aligned(one)) for one in (scattered, run))
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


@each_dtype
def test_it_knows_what_it_can_read(dtype: torch.dtype, one_thread: None) -> None:
    assert can_run_native(random_run([8, 8], dtype))
    assert can_run_native(random_run([8], dtype, dim=1, cells=3))
    assert can_run_native(random_run([1, 1], dtype))
    run = random_run([8], dtype)
    unprojected = run.weights._replace(projection_weight=torch.zeros(0, CELLS))
    assert not can_run_native(run._replace(weights=unprojected))
    assert not can_run_native(random_run([8], torch.float64))
    assert not can_run_native(random_run([8], dtype)._replace(batch_sizes=[]))


def test_others_states_and_devices_are_left_to_others(one_thread: None) -> None:
    run = random_run([9, 9])
    assert can_run_native(run)
    # The last sentence has no position.
    assert not can_run_native(run._replace(batch_sizes=[8, 8]))
    # There is a step at which nothing is read.
    assert not can_run_native(run._replace(batch_sizes=[9, 0], inputs=run.inputs[:9]))
    assert not can_run_native(run._replace(state=LstmState(*(part.double() for part in run.state))))
    assert not can_run_native(run._replace(inputs=run.inputs.double()))
    assert not can_run_native(run._replace(inputs=run.inputs.to("meta")))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not can_run_native(run)


def test_what_does_not_fit_is_left_to_pytorchs_errors(one_thread: None) -> None:
    run = random_run([16, 16])
    hidden, cell = run.state
    unfit = [
        run._replace(state=LstmState(hidden[:3], cell)),
        run._replace(state=LstmState(hidden, cell[:, :64])),
        run._replace(state=LstmState(hidden[:, :32], cell)),
        run._replace(inputs=run.inputs[:3]),
        run._replace(inputs=run.inputs[:, :3]),
        run._replace(bias=run.bias[:128]),
        run._replace(batch_sizes=[8, 24]),
        *(
            run._replace(weights=run.weights._replace(recurrent_weight=weight))
            for weight in (run.weights.recurrent_weight[:128], run.weights.recurrent_weight[:, :32])
        ),
    ]
    assert can_run_native(run) and not any(map(can_run_native, unfit))


@each_dtype
def test_memory_is_exact_near_zero_and_far_from_it(dtype: torch.dtype) -> None:
    run = random_run([16], dtype, clip=None, cells=64)
    gates = torch.tensor([-200.0, -90.0, -20.0, -1.0, -1e-3, -1e-6, 0.0, 1e-4, 0.3, 5.0, 88.0, 1e4])
    # Another combination of gates for each cell.
    bias = gates[torch.randint(len(gates), (4 * 64,))].to(dtype)
    forget = bias.chunk(4)[2]
    forget.copy_(forget.float().add(1.0).round().sub(1.0))  # one more is known exactly too
    run = run._replace(
        weights=LstmWeights(*(torch.zeros_like(weight) for weight in run.weights)),
        bias=bias.float(),
        state=run.state._replace(hidden=torch.zeros_like(run.state.hidden)),
    )
    i, j, f, o = run.gate_bias().double().chunk(4)
    parts = f.sigmoid() * run.state.cell.double(), i.sigmoid() * j.tanh()
    done = lstm_native_aligned(run)
    cell = done.state.cell.double()
    assert ((cell - sum(parts)).abs() <= 1e-6 * sum(part.abs() for part in parts) + 1e-30).all()
    opened = back(run, done, random_gradients(run)).cell_outputs.double()
    rtol = 1e-6 if dtype == torch.float32 else 2**-8
    assert torch.allclose(opened, o.sigmoid() * cell.tanh(), rtol=rtol, atol=1e-30)


def test_without_clips_is_without_bounds() -> None:
    run = random_run([16] * 4, clip=None)
    grown = run._replace(bias=torch.full_like(run.bias, 50.0), clips=Clips(None, None))
    assert lstm_native_aligned(grown).state.cell.max() > 2.0
    bounded = lstm_native_aligned(grown._replace(clips=Clips(0.5, 0.1)))
    assert bounded.state.cell.max().item() == 0.5
    assert bounded.outputs.abs().max().item() == pytest.approx(0.1)
