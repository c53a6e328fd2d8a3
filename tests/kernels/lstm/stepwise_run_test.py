import torch

from elmo_scratch.kernels.lstm.reference import steps_of
from tests.kernels.lstm.random_run import random_run, reference


def test_each_step_starts_from_the_memory_of_the_one_before() -> None:
    run = random_run([5, 4, 4, 1])
    done = reference(run)
    steps = steps_of(run, done.kept)
    assert [len(step.output) for step in steps] == [5, 4, 4, 1]
    assert torch.equal(steps[0].previous_cell, run.state.cell)
    for before, step in zip(steps, steps[1:], strict=False):
        assert torch.equal(step.previous_cell, before.cell_output.cell[: len(step.output)])
    assert torch.equal(torch.cat([step.output for step in steps]), done.outputs)


def test_what_a_cell_puts_out_is_what_is_projected() -> None:
    run = random_run([5, 4, 4, 1], clip=None)
    for step in steps_of(run, reference(run).kept):
        projected = step.cell_output.output @ run.weights.projection_weight.t()
        assert torch.allclose(projected, step.output, atol=1e-5)
