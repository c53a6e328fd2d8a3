import pytest
import torch

from elmo_scratch.modules.lstms.steps import LstmProducts, run_steps
from tests.modules.lstms.random_run import random_run


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_is_the_run_of_steps(dtype: torch.dtype) -> None:
    run = random_run([5, 4, 4, 1], dtype)
    products = LstmProducts.of(run.weights, dtype)
    expected = run_steps(products, *run[2:8])
    done = run.stepwise()
    assert torch.equal(done.outputs, expected.outputs)
    assert all(torch.equal(*pair) for pair in zip(done.state, expected.state, strict=True))


def test_what_it_opened_is_what_it_projected() -> None:
    run = random_run([5, 4, 4, 1], clip=None)
    done = run.stepwise()
    back = run.back(done)
    projected = back.opened @ run.weights.projection.t()
    assert torch.allclose(projected, done.outputs, atol=1e-5)


def test_it_keeps_the_weights_and_nothing_twice() -> None:
    run = random_run([5, 4, 4, 1])
    kept = run.stepwise().kept
    assert kept[0] is run.weights.from_hidden and kept[1] is run.weights.projection
    # Of each step the memory before and after it, what went on, the gates and the output.
    assert len(kept) == 2 + 4 * 5
    assert [tensor.size(0) for tensor in kept[2::5]] == [5, 4, 4, 1]
