"""
Triton's kernels are the reference, within rounding. They run on a GPU or, much more slowly, in
Triton's interpreter, by `make test-triton`.
"""

import logging
from types import ModuleType
from typing import List, Optional, Tuple

import pytest
import torch

from elmo_scratch.kernels import gpu
from elmo_scratch.kernels.lstm import cells, cuda_graphs
from elmo_scratch.kernels.lstm.cuda_graphs import LstmGraphCache, lstm_replayed, step_tensors
from elmo_scratch.kernels.lstm.run import LstmRun
from elmo_scratch.modules import LstmState
from tests.kernels.lstm.random_run import (
    back,
    on,
    random_gradients,
    random_run,
    reference,
    there_and_back,
)
from tests.kernels.triton_kernels.has_triton import DEVICE, IS_INTERPRETED, needs_triton

pytestmark = needs_triton


@pytest.fixture
def fused() -> ModuleType:
    from elmo_scratch.kernels.triton_kernels import lstm_steps

    assert lstm_steps.IS_INTERPRETED == IS_INTERPRETED
    return lstm_steps


each_size = pytest.mark.parametrize(
    "num_rows, dim, num_cells", [(5, 16, 32), (33, 20, 40), (16, 72, 272)]
)
"""A block alone, parts of blocks in all directions, and gates in two parts."""


def fused_there_and_back(
    fused: ModuleType, run: LstmRun, d_outputs: torch.Tensor, d_state: LstmState
) -> Tuple[List[torch.Tensor], List[torch.Tensor]]:
    outputs, *histories = fused.fused_steps(run, keeps=True)
    gradients = fused.fused_steps_backward(run, histories, d_outputs, d_state)
    return [outputs, *histories], gradients


@pytest.mark.parametrize("clip, dropout", [(None, 0.0), (0.3, 0.4)])
@each_size
def test_it_is_the_reference(
    fused: ModuleType,
    num_rows: int,
    dim: int,
    num_cells: int,
    clip: Optional[float],
    dropout: float,
) -> None:
    run = random_run([num_rows] * 3, torch.float32, clip, dropout, dim, num_cells)
    incoming = random_gradients(run)
    assert incoming.state is not None
    expected = reference(run)
    gradients = back(run, expected, incoming)
    there, (d_outputs, d_state) = on(DEVICE, run), on(DEVICE, incoming)
    made, found = fused_there_and_back(fused, there, d_outputs, d_state)
    outputs, memory, gates, put_out, projected = (part.cpu() for part in made)
    assert torch.allclose(outputs, expected.outputs, atol=1e-5)
    if cells.COMPILED is not None:
        # It keeps gates in the same form.
        kept = step_tensors(run, [memory, gates, put_out, projected])
        for ours, theirs in zip(kept, expected.kept, strict=True):
            assert torch.allclose(ours, theirs, atol=1e-5)
    if clip is not None:
        assert projected.abs().max() == clip and memory.abs().max() == clip
    for ours, theirs in zip(found, [*gradients[:2], *gradients.state], strict=True):
        assert theirs.any()
        bound = 1e-5 * theirs.abs().max().item()
        assert torch.allclose(ours.cpu(), theirs, rtol=1e-4, atol=bound)
    ahead = fused.fused_steps(there, keeps=False)
    assert len(ahead) == 2
    assert all(torch.equal(*pair) for pair in zip(ahead, made))


@each_size
def test_in_bfloat16_it_points_where_the_exact_run_does(
    fused: ModuleType, num_rows: int, dim: int, num_cells: int
) -> None:
    exact = random_run([num_rows] * 2, torch.float32, None, 0.4, dim, num_cells)
    incoming = random_gradients(exact)
    assert incoming.state is not None
    expected = reference(exact)
    gradients = back(exact, expected, incoming)
    run = on(DEVICE, exact._replace(dtype=torch.bfloat16))
    (outputs, *_), found = fused_there_and_back(fused, run, *on(DEVICE, incoming))
    assert found[0].dtype == torch.bfloat16
    theirs = [expected.outputs, *gradients[:2], *gradients.state]
    for one, other in zip([outputs, *found], theirs, strict=True):
        one = one.float().cpu()
        assert not torch.equal(one, other)
        assert torch.cosine_similarity(one.flatten(), other.flatten(), dim=0) >= 0.999


def test_nan_stays_nan(fused: ModuleType) -> None:
    run = on(DEVICE, random_run([2] * 2, clip=0.3, dim=16, cells=32))
    run.inputs[0, 0] = float("nan")
    outputs, memory = (part.view(2, 2, -1) for part in fused.fused_steps(run, keeps=False))
    assert outputs[:, 0].isnan().all() and memory[:, 0].isnan().all()
    assert outputs[:, 1].isfinite().all() and memory[:, 1].isfinite().all()


@pytest.fixture
def two_steps(monkeypatch: pytest.MonkeyPatch) -> LstmRun:
    """A run, and recordings of two steps by Triton's kernels."""
    monkeypatch.setattr(cuda_graphs, "DEVICES", ("cpu", "cuda"))
    monkeypatch.setattr(cuda_graphs, "NUM_STEPS", 2)
    monkeypatch.setattr(gpu, "FUSES", "1")
    monkeypatch.setattr(gpu, "STOPPED", {})
    if cells.COMPILED is None and IS_INTERPRETED:
        pytest.skip("the memory cells were not compiled here")
    cuda_graphs.grid_of.cache_clear()
    return random_run([7, 7, 4, 1, 1], clip=0.6, dropout=0.4, dim=16, cells=32)


def test_recordings_use_it(
    two_steps: LstmRun, caplog: pytest.LogCaptureFixture, fused: ModuleType
) -> None:
    there = on(DEVICE, two_steps)
    recorded = LstmGraphCache().of(there, needs_grad=True)
    assert recorded is not None and not caplog.records
    incoming = random_gradients(two_steps)._replace(state=None)
    found = there_and_back(there, lstm_replayed(there, recorded), on(DEVICE, incoming))
    expected = there_and_back(two_steps, reference(two_steps), incoming)
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours.cpu(), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_weights_are_no_reason_to_doubt_it(
    two_steps: LstmRun, dtype: torch.dtype, fused: ModuleType
) -> None:
    weights = two_steps.weights._replace(recurrent_weight=6.0 * two_steps.weights.recurrent_weight)
    there = on(DEVICE, two_steps._replace(weights=weights, dtype=dtype))
    recorded = LstmGraphCache().of(there, needs_grad=True)
    assert recorded is not None and gpu.STOPPED == {}


@pytest.mark.parametrize("failure", ["raises", "differs"])
def test_kernels_that_fail_are_not_used_again(
    failure: str,
    two_steps: LstmRun,
    fused: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    right, calls = fused.fused_steps, 0

    def wrong(run: LstmRun, keeps: bool) -> List[torch.Tensor]:
        nonlocal calls
        calls += 1
        if failure == "raises":
            raise OSError("no compiler\nand more")
        made: List[torch.Tensor] = right(run, keeps)
        return [made[0] + 0.01, *made[1:]]

    monkeypatch.setattr(fused, "fused_steps", wrong)
    there, recordings = on(DEVICE, two_steps), LstmGraphCache()
    with caplog.at_level(logging.WARNING):
        recorded = recordings.of(there, needs_grad=False)
        assert recorded is not None
        done = calls
        assert done > 0
        assert recordings.of(there, needs_grad=True) is not None
    assert calls == done and list(gpu.STOPPED) == ["lstm_steps"]
    reason = {"raises": "OSError: no compiler", "differs": "their results differ"}[failure]
    assert [record.getMessage() for record in caplog.records] == [
        "Triton's kernels for the steps of LSTMs are not used from now on, and PyTorch's "
        f"operations take their place, more slowly: {reason}"
    ]
    outputs = lstm_replayed(there, recorded).outputs.cpu()
    assert torch.allclose(outputs, reference(two_steps).outputs, atol=1e-5)
