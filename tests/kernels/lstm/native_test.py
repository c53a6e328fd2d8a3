from typing import List, Optional

import pytest
import torch

from elmo_scratch.kernels.lstm import native
from elmo_scratch.kernels.lstm.native import lstm_native
from elmo_scratch.modules import LstmState
from tests.kernels.compiled_dtypes import each_dtype_of, needs_bfloat16
from tests.kernels.frozen_weights import needs_independent_rows
from tests.kernels.lstm.random_run import (
    of_sentences,
    positions_of,
    random_gradients,
    random_run,
    reference,
    there_and_back,
)

pytestmark = pytest.mark.skipif(
    not native.READ, reason="there is no compiled run for this processor"
)

each_dtype = each_dtype_of(native.READ)
each_size = pytest.mark.parametrize(
    "dim, cells", [(1, 3), (50, 100), (32, 100), (50, 96), (200, 650)]
)
"""Of which outputs, memory cells, or both are padded."""


@pytest.mark.usefixtures("each_number_of_threads")
@pytest.mark.parametrize("clip, dropout", [(None, 0.0), (0.6, 0.4)])
@pytest.mark.parametrize("batch_sizes", [[16] * 3, [33, 33, 20, 17, 5, 1]])
@each_size
def test_in_float32_it_is_the_run_step_by_step(
    dim: int, cells: int, batch_sizes: List[int], clip: Optional[float], dropout: float
) -> None:
    run = random_run(batch_sizes, torch.float32, clip, dropout, dim, cells)
    found = there_and_back(run, lstm_native(run))
    for ours, theirs in zip(found, there_and_back(run, reference(run)), strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        assert ours.any() or not theirs.any()
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * theirs.abs().max().item())


@needs_bfloat16(native.READ)
@each_size
def test_in_bfloat16_it_points_where_the_exact_run_does(dim: int, cells: int) -> None:
    # Without clips, at which what is rounded and what isn't would part.
    run = random_run([33, 33, 20, 17, 5, 1], torch.bfloat16, None, 0.4, dim, cells)
    exact = run._replace(dtype=torch.float32)
    found = there_and_back(run, lstm_native(run))
    for ours, theirs in zip(found, there_and_back(exact, lstm_native(exact)), strict=True):
        assert ours.shape == theirs.shape
        assert torch.cosine_similarity(ours.float().flatten(), theirs.flatten(), dim=0) >= 0.9995


@each_dtype
@each_size
def test_without_gradients_of_last_states_they_are_zeros(
    dtype: torch.dtype, dim: int, cells: int
) -> None:
    run = random_run([16] * 3, dtype, None, 0.0, dim, cells)
    done, incoming = lstm_native(run), random_gradients(run)
    zeros = LstmState(*map(torch.zeros_like, run.state))
    found, expected = (
        there_and_back(run, done, incoming._replace(state=state)) for state in (None, zeros)
    )
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


@needs_independent_rows
@each_dtype
@each_size
def test_no_sentence_depends_on_others_to_the_bit(dtype: torch.dtype, dim: int, cells: int) -> None:
    run = random_run([40, 40, 31, 9], dtype, 0.6, 0.3, dim, cells)
    done = lstm_native(run)
    for start, end in [(0, 16), (3, 40), (37, 38)]:
        alone = lstm_native(of_sentences(run, start, end))
        assert torch.equal(alone.outputs, done.outputs[positions_of(run, start, end)])
