from typing import List, Optional

import pytest
import torch

from elmo_scratch.modules.lstms import compiled_run
from tests.modules.compiled_dtypes import each_dtype_of, needs_bfloat16
from tests.modules.frozen_weights import needs_independent_rows
from tests.modules.lstms.random_run import random_run, tensors_of

pytestmark = pytest.mark.skipif(
    not compiled_run.READ, reason="there is no compiled run for this processor"
)

each_dtype = each_dtype_of(compiled_run.READ)
each_size = pytest.mark.parametrize(
    "dim, cells", [(1, 3), (50, 100), (32, 100), (50, 96), (200, 650)]
)
"""Of which outputs, memory cells, or both are filled up."""


@pytest.mark.usefixtures("each_number_of_threads")
@pytest.mark.parametrize("clip, dropout", [(None, 0.0), (0.6, 0.4)])
@pytest.mark.parametrize("batch_sizes", [[16] * 3, [33, 33, 20, 17, 5, 1]])
@each_size
def test_in_float32_it_is_the_run_step_by_step(
    dim: int, cells: int, batch_sizes: List[int], clip: Optional[float], dropout: float
) -> None:
    run = random_run(batch_sizes, torch.float32, clip, dropout, dim, cells)
    done, expected = run.filled(), run.stepwise()
    pairs = zip(
        tensors_of(done, run.back(done)), tensors_of(expected, run.back(expected)), strict=True
    )
    for ours, theirs in pairs:
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        assert ours.any() or not theirs.any()
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * theirs.abs().max().item())


@needs_bfloat16(compiled_run.READ)
@each_size
def test_in_bfloat16_it_points_where_the_exact_run_does(dim: int, cells: int) -> None:
    # Without clips, at which what is rounded and what isn't would part.
    run = random_run([33, 33, 20, 17, 5, 1], torch.bfloat16, None, 0.4, dim, cells)
    exact = run._replace(dtype=torch.float32)
    done, expected = run.filled(), exact.filled()
    pairs = zip(
        tensors_of(done, run.back(done)), tensors_of(expected, exact.back(expected)), strict=True
    )
    for ours, theirs in pairs:
        assert ours.shape == theirs.shape
        assert torch.cosine_similarity(ours.float().flatten(), theirs.flatten(), dim=0) >= 0.9995


@each_dtype
@each_size
def test_without_gradients_of_last_states_they_are_zeros(
    dtype: torch.dtype, dim: int, cells: int
) -> None:
    run = random_run([16] * 3, dtype, None, 0.0, dim, cells)
    done = run.filled()
    assert run.state_gradients is not None
    zeros = run._replace(
        state_gradients=type(run.state_gradients)(*map(torch.zeros_like, run.state_gradients))
    )
    expected, back = zeros.back(done), run._replace(state_gradients=None).back(done)
    pairs = zip(tensors_of(done, back), tensors_of(done, expected), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)


@each_dtype
def test_what_is_filled_in_changes_nothing(dtype: torch.dtype) -> None:
    run = random_run([20, 18, 18], dtype, dim=64, cells=96)
    filled, compiled = run.filled(), run.compiled()
    pairs = zip(
        tensors_of(filled, run.back(filled)),
        tensors_of(compiled, run.back(compiled)),
        strict=True,
    )
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)


@needs_independent_rows
@each_dtype
@each_size
def test_no_sentence_depends_on_others_to_the_bit(dtype: torch.dtype, dim: int, cells: int) -> None:
    run = random_run([40, 40, 31, 9], dtype, 0.6, 0.3, dim, cells)
    done = run.filled()
    for start, end in [(0, 16), (3, 40), (37, 38)]:
        alone = run.of_sentences(start, end).filled()
        assert torch.equal(alone.outputs, done.outputs[run.positions_of(start, end)])
