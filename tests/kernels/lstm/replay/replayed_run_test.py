from typing import List, Optional

import pytest
import torch

from elmo_scratch.kernels.lstm import cuda_graphs
from elmo_scratch.kernels.lstm.cuda_graphs import LstmGraphCache, lstm_replayed
from elmo_scratch.kernels.lstm.run import LstmResult, LstmRun, LstmWeights
from elmo_scratch.modules import LstmState
from elmo_scratch.modules.lstm import ProjectedLstm
from elmo_scratch.modules.sequences import PackedVectors
from tests.gpu import each_device
from tests.kernels.lstm.random_run import (
    CELLS,
    DIM,
    back,
    of_sentences,
    on,
    positions_of,
    random_gradients,
    random_run,
    reference,
    there_and_back,
)

pytestmark = pytest.mark.usefixtures("record_everywhere")

each_batch = pytest.mark.parametrize(
    "batch_sizes",
    [[32] * 20, [32] * 7, [20] * 10, [33, 33, 32, 20, 17, 16, 5, 1, 1, 1, 1], [1] * 21, [70, 3]],
)
"""Fewer, as many and more steps and sentences than are recorded; of equal and other lengths."""


def replayed(run: LstmRun, recordings: Optional[LstmGraphCache] = None) -> LstmResult:
    recorded = (recordings or LstmGraphCache()).of(run, needs_grad=True)
    assert recorded is not None
    return lstm_replayed(run, recorded)


@pytest.mark.parametrize("has_state_gradients", [True, False])
@pytest.mark.parametrize("clip, dropout", [(None, 0.0), (0.6, 0.0), (0.6, 0.4)])
@each_batch
@each_device
def test_it_is_the_run_step_by_step(
    device: str,
    batch_sizes: List[int],
    clip: Optional[float],
    dropout: float,
    has_state_gradients: bool,
) -> None:
    run = random_run(batch_sizes, torch.float32, clip, dropout)
    there, incoming = on(device, run), random_gradients(run)
    if not has_state_gradients:
        incoming = incoming._replace(state=None)
    found = there_and_back(there, replayed(there), on(device, incoming))
    for ours, theirs in zip(found, there_and_back(run, reference(run), incoming), strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        assert ours.any()
        bound = 1e-5 * theirs.abs().max().item()
        assert torch.allclose(ours.cpu(), theirs, rtol=1e-4, atol=bound)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@each_batch
@each_device
def test_in_bfloat16_it_points_where_the_exact_run_does(
    device: str, batch_sizes: List[int], dropout: float
) -> None:
    run = random_run(batch_sizes, torch.bfloat16, None, dropout)
    there, exact = on(device, run), run._replace(dtype=torch.float32)
    incoming = random_gradients(run)._replace(state=None)
    found = there_and_back(there, replayed(there), on(device, incoming))
    expected = there_and_back(exact, reference(exact), incoming)
    for ours, theirs in zip(found, expected, strict=True):
        ours = ours.float().cpu()
        assert not torch.equal(ours, theirs)
        assert torch.cosine_similarity(ours.flatten(), theirs.flatten(), dim=0) >= 0.9995


@each_device
def test_recordings_serve_one_batch_after_the_other(device: str) -> None:
    recordings = LstmGraphCache()
    run = on(device, random_run([20] * 12))
    first = replayed(run, recordings)
    before = [part.clone() for part in (first.outputs, *first.state, *first.kept)]
    other = of_sentences(run, 3, 15)
    assert torch.allclose(
        replayed(other, recordings).outputs, first.outputs[positions_of(run, 3, 15)], atol=1e-5
    )
    after = [first.outputs, *first.state, *first.kept]
    assert all(torch.equal(*pair) for pair in zip(after, before, strict=True))
    incoming = on(device, random_gradients(run))
    gradients = back(run, first, incoming)
    assert torch.equal(back(run, first, incoming).gates, gradients.gates)


@each_device
def test_weights_that_moved_are_read_where_they_are(device: str) -> None:
    run = on(device, random_run([20, 18, 18], dropout=0.3))
    done, incoming = replayed(run), on(device, random_gradients(run)._replace(state=None))
    expected = back(run, done, incoming)
    moved = run._replace(weights=LstmWeights(*(weight.clone() for weight in run.weights)))
    for weight in run.weights:
        weight.zero_()
    for ours, theirs in zip(back(moved, done, incoming)[:3], expected[:3], strict=True):
        assert theirs.any()
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@each_device
def test_what_others_kept_in_their_own_way_is_read_too(device: str) -> None:
    run = on(device, random_run([20, 18, 18], dropout=0.3))
    done, incoming = replayed(run), on(device, random_gradients(run)._replace(state=None))

    def turned(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.double().t().contiguous().t()

    other = run._replace(
        weights=LstmWeights(*map(turned, run.weights)), state=LstmState(*map(turned, run.state))
    )
    found = back(other, done._replace(kept=[turned(tensor) for tensor in done.kept]), incoming)
    for ours, theirs in zip(found[:3], back(run, done, incoming)[:3], strict=True):
        assert torch.allclose(ours.to(theirs.dtype), theirs, rtol=1e-4, atol=1e-5)


@each_device
def test_an_lstm_uses_it(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lstm = ProjectedLstm(DIM, DIM, CELLS, recurrent_dropout=0.3).eval().to(device)
    sizes = [9, 9, 5, 2]
    inputs = torch.randn(sum(sizes), DIM, device=device)
    state = LstmState(torch.randn(9, DIM, device=device), torch.randn(9, CELLS, device=device))
    found = []
    for devices in (("cpu", "cuda"), ()):
        monkeypatch.setattr(cuda_graphs, "DEVICES", devices)
        with torch.inference_mode():
            ahead = lstm(PackedVectors(inputs, sizes), state)
        lstm.zero_grad()
        done = lstm(PackedVectors(inputs, sizes), state)
        done.outputs.square().sum().backward()
        gradients = [weight.grad.clone() for weight in lstm.parameters() if weight.grad is not None]
        found.append([ahead.outputs, *ahead.state, done.outputs, *done.state, *gradients])
        assert bool(lstm._cache.recordings._kept) == bool(devices)
        lstm._cache.recordings.forget()
    assert len(found[0]) == 10
    for ours, theirs in zip(*found, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("has_state_gradients", [True, False])
@each_device
def test_sentences_without_a_position_keep_their_state(
    device: str, has_state_gradients: bool
) -> None:
    whole = random_run([35, 35, 3], dropout=0.3)
    # Of 35 sentences one has three words, 31 have one, and three have none.
    run = whole._replace(batch_sizes=[32, 1, 1], inputs=whole.inputs[:34])
    there, incoming = on(device, run), random_gradients(run)
    done = replayed(there)
    assert torch.equal(done.state.hidden[32:].cpu(), run.state.hidden[32:])
    assert torch.equal(done.state.cell[32:].cpu(), run.state.cell[32:])
    if not has_state_gradients:
        incoming = incoming._replace(state=None)
    found = there_and_back(there, done, on(device, incoming))
    for ours, theirs in zip(found, there_and_back(run, reference(run), incoming), strict=True):
        assert ours.shape == theirs.shape
        assert torch.allclose(ours.cpu(), theirs, rtol=1e-4, atol=1e-4)


@each_device
def test_an_lstm_that_moves_lets_go_of_its_recordings(device: str) -> None:
    lstm = ProjectedLstm(DIM, DIM, CELLS).requires_grad_(False).to(device)
    lstm(PackedVectors(torch.randn(3, DIM, device=device), [2, 1]))
    assert lstm._cache.recordings._kept
    lstm.double()
    assert not lstm._cache.recordings._kept


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@each_device
def test_weights_of_a_run_alone_are_copied_for_each_replay(
    device: str, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_graphs, "MAX_MOVES", 1)
    recordings, run = LstmGraphCache(), random_run([20, 18, 18, 3], dropout=dropout)
    others = on(device, run.weights)
    incoming = random_gradients(run)._replace(state=None)
    for scale in (0.5, 2.0, -1.0):
        own = run.weights._replace(recurrent_weight=run.weights.recurrent_weight * scale)
        here = run._replace(weights=own, has_own_weights=True)
        weight = own.recurrent_weight.to(device)
        there = on(device, here)._replace(weights=others._replace(recurrent_weight=weight))
        done = replayed(there, recordings)
        assert len(recordings._kept) == 1
        found = there_and_back(there, done, on(device, incoming))
        for ours, theirs in zip(found, there_and_back(here, reference(here), incoming)):
            assert torch.allclose(ours.cpu(), theirs, rtol=1e-4, atol=1e-4)
