from typing import List, Optional

import pytest
import torch

from elmo_scratch.kernels.library import INSTRUCTIONS, Instructions
from elmo_scratch.kernels.lstm import native
from elmo_scratch.kernels.lstm.native import NativeWeights, can_run_native, lstm_native_inference
from elmo_scratch.kernels.lstm.run import LstmRun
from tests.kernels.compiled_dtypes import each_dtype_of, needs_bfloat16
from tests.kernels.lstm.random_run import of_sentences, positions_of, random_run, reference

pytestmark = pytest.mark.skipif(
    not native.READ, reason="there is no compiled run for this processor"
)

each_dtype = each_dtype_of(native.READ)
each_size = pytest.mark.parametrize("dim, cells", [(64, 128), (50, 100), (256, 2048)])
BATCH_SIZES = [20, 20, 17, 16, 5, 1, 1]


def read(run: LstmRun) -> List[torch.Tensor]:
    done = lstm_native_inference(run, NativeWeights.of(run))
    assert not done.kept and done.backward is None
    return [done.outputs, *done.state]


@pytest.mark.usefixtures("each_number_of_threads")
@pytest.mark.parametrize("clip, dropout", [(None, 0.0), (0.6, 0.4)])
@pytest.mark.parametrize("batch_sizes", [[1] * 5, [16] * 3, BATCH_SIZES])
@each_size
def test_in_float32_it_is_the_run_step_by_step(
    dim: int, cells: int, batch_sizes: List[int], clip: Optional[float], dropout: float
) -> None:
    run = random_run(batch_sizes, torch.float32, clip, dropout, dim, cells)
    expected = reference(run)
    for ours, theirs in zip(read(run), [expected.outputs, *expected.state], strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@needs_bfloat16(native.READ)
@each_size
def test_in_bfloat16_it_points_where_the_exact_run_does(dim: int, cells: int) -> None:
    run = random_run(BATCH_SIZES, torch.bfloat16, None, 0.4, dim, cells)
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
    if dtype == torch.bfloat16 and INSTRUCTIONS < Instructions.TILES:
        pytest.skip("oneDNN makes no promise about rows that are rounded")
    run = random_run(BATCH_SIZES, dtype, 0.6, 0.3, dim, cells)
    together = read(run)
    num_gates = len(NativeWeights.of(run).panels.bias)
    monkeypatch.setattr(native, "GATES_AT_ONCE", at_once * num_gates)
    assert NativeWeights.of(run).at_once == at_once
    assert all(torch.equal(*pair) for pair in zip(read(run), together, strict=True))


@each_size
def test_no_sentence_depends_on_others_to_the_bit(
    dim: int, cells: int, each_number_of_threads: None
) -> None:
    run = random_run([40, 40, 31, 9], torch.float32, 0.6, 0.3, dim, cells)
    outputs, *state = read(run)
    # Alone, and with too few others for all threads.
    for start, end in [(0, 1), (37, 38), (3, 8), (0, 16)]:
        some, *some_state = read(of_sentences(run, start, end))
        assert torch.equal(some, outputs[positions_of(run, start, end)])
        for ours, whole in zip(some_state, state, strict=True):
            assert torch.equal(ours, whole[start:end])


@each_dtype
def test_sentences_that_have_ended_keep_their_state(dtype: torch.dtype) -> None:
    run = random_run([20, 18, 18], dtype)
    fewer = run._replace(batch_sizes=[18, 18, 1], inputs=run.inputs[:37])
    assert can_run_native(fewer, needs_grad=False) and not can_run_native(fewer)
    too_few = run._replace(state=of_sentences(fewer, 0, 18).state)
    assert not can_run_native(too_few, needs_grad=False)
    outputs, hidden, cell = read(fewer)
    alone = read(of_sentences(fewer, 0, 18))
    assert torch.equal(outputs, alone[0])
    assert torch.equal(hidden[:18], alone[1]) and torch.equal(cell[:18], alone[2])
    assert torch.equal(hidden[18:], run.state.hidden[18:])
    assert torch.equal(cell[18:], run.state.cell[18:])
