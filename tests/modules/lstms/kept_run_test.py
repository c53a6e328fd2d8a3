from typing import Callable

import pytest
import torch

from elmo_scratch.modules import LstmState
from elmo_scratch.modules.lstms import compiled_run
from elmo_scratch.modules.lstms.kept_run import KeptRun
from tests.modules.lstms.random_run import CELLS, DIM, RandomRun, random_run

each_run = pytest.mark.parametrize(
    "read",
    [
        pytest.param(RandomRun.stepwise, id="stepwise"),
        pytest.param(
            RandomRun.compiled,
            id="compiled",
            marks=pytest.mark.skipif(
                not compiled_run.READ, reason="there is no compiled run for this processor"
            ),
        ),
    ],
)


@each_run
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients_are_those_of_ordinary_operations(
    read: Callable[[RandomRun], KeptRun], dropout: float
) -> None:
    run = random_run([18, 17, 9, 9], dropout=dropout)
    hidden, cell = (part.double().requires_grad_() for part in run.state)
    weights = [weight.double() for weight in run.weights]
    gates_of, projections = [], []
    last, outputs, start = [], [], 0
    states = (hidden, cell)
    for active in [*run.batch_sizes, 0]:
        last.append([part[active:] for part in states])
        if active == 0:
            break
        before = [part[:active] for part in states]
        inputs = run.inputs[start : start + active].double()
        gates = inputs @ weights[0].t() + before[0] @ weights[1].t() + run.bias.double()
        i, j, f, o = gates.chunk(4, dim=1)
        bound = run.clips.cell
        memory = (f.sigmoid() * before[1] + i.sigmoid() * j.tanh()).clamp(-bound, bound)
        projected = (o.sigmoid() * memory.tanh()) @ weights[2].t()
        output = projected.clamp(-bound, bound)
        if run.output_scale is not None:
            output = output * run.output_scale[:active].double()
        gates_of.append(gates)
        projections.append(projected)
        outputs.append(output)
        states = (output, memory)
        start += active
    state = [torch.cat(parts) for parts in zip(*reversed(last), strict=True)]
    gradients = (run.output_gradients, *run.state_gradients)
    expected = torch.autograd.grad(
        (torch.cat(outputs), *state),
        [hidden, cell, *gates_of, *projections],
        tuple(gradient.double() for gradient in gradients),
    )
    done = read(run)
    back = run.back(done)
    assert torch.allclose(done.outputs.double(), torch.cat(outputs), atol=1e-5)
    for ours, exact in zip(done.state, state, strict=True):
        assert torch.allclose(ours.double(), exact, atol=1e-5)
    num_steps = len(run.batch_sizes)
    parts = [
        (back.state.hidden, expected[0]),
        (back.state.cell, expected[1]),
        (back.gates, torch.cat(expected[2 : 2 + num_steps])),
        (back.projected, torch.cat(expected[2 + num_steps :])),
    ]
    for ours, exact in parts:
        assert torch.allclose(ours.double(), exact, rtol=1e-4, atol=2e-5)


@each_run
def test_shapes_are_those_of_what_was_read(read: Callable[[RandomRun], KeptRun]) -> None:
    run = random_run([18, 17])
    done = read(run)
    back = run.back(done)
    assert done.outputs.shape == back.projected.shape == (35, DIM)
    assert back.gates.shape == (35, 4 * CELLS) and back.opened.shape == (35, CELLS)
    assert done.state.hidden.shape == back.state.hidden.shape == (18, DIM)
    assert done.state.cell.shape == back.state.cell.shape == (18, CELLS)


@each_run
def test_gradients_that_come_in_are_left_as_they_are(
    read: Callable[[RandomRun], KeptRun],
) -> None:
    run = random_run([18, 17], dropout=0.3)
    given = (run.output_gradients, *run.state_gradients, run.inputs, *run.state)
    before = [tensor.clone() for tensor in given]
    run.back(read(run))
    assert all(torch.equal(*pair) for pair in zip(given, before, strict=True))


@each_run
def test_no_gradients_of_last_states_are_zeros(read: Callable[[RandomRun], KeptRun]) -> None:
    run = random_run([18, 17, 9])
    done = read(run)
    zeros = LstmState(*(torch.zeros_like(part) for part in run.state))
    expected = run._replace(state_gradients=zeros).back(done)
    back = run._replace(state_gradients=None).back(done)
    pairs = zip([*back[:3], *back.state], [*expected[:3], *expected.state], strict=True)
    assert all(torch.equal(*pair) for pair in pairs)
