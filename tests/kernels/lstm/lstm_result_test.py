from typing import Callable

import pytest
import torch

from elmo_scratch.kernels.lstm import native
from elmo_scratch.kernels.lstm.native import lstm_native_aligned
from elmo_scratch.kernels.lstm.run import LstmResult, LstmRun
from elmo_scratch.modules import LstmState
from tests.kernels.lstm.random_run import back, random_gradients, random_run, reference

each_way = pytest.mark.parametrize(
    "way",
    [
        pytest.param(reference, id="reference"),
        pytest.param(
            lstm_native_aligned,
            id="native",
            marks=pytest.mark.skipif(
                not native.READ, reason="there is no compiled run for this processor"
            ),
        ),
    ],
)

Way = Callable[[LstmRun], LstmResult]


@each_way
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients_are_those_of_ordinary_operations(way: Way, dropout: float) -> None:
    run = random_run([18, 17, 9, 9], dropout=dropout)
    incoming = random_gradients(run)
    hidden, cell = (part.double().requires_grad_() for part in run.state)
    weights = [weight.double() for weight in run.weights]
    forget = torch.tensor([0.0, 0.0, 1.0, 0.0]).repeat_interleave(cell.size(1))
    gates_of, projections, cell_outputs = [], [], []
    last, outputs, start = [], [], 0
    states = (hidden, cell)
    for active in [*run.batch_sizes, 0]:
        last.append([part[active:] for part in states])
        if active == 0:
            break
        before = [part[:active] for part in states]
        inputs = run.inputs[start : start + active].double()
        gates = inputs @ weights[0].t() + before[0] @ weights[1].t() + (run.bias + forget).double()
        i, j, f, o = gates.chunk(4, dim=1)
        bound = run.clips.cell
        memory = (f.sigmoid() * before[1] + i.sigmoid() * j.tanh()).clamp(-bound, bound)
        cell_outputs.append(o.sigmoid() * memory.tanh())
        projected = cell_outputs[-1] @ weights[2].t()
        output = projected.clamp(-bound, bound)
        if run.recurrent_dropout_mask is not None:
            output = output * run.recurrent_dropout_mask[:active].double()
        gates_of.append(gates)
        projections.append(projected)
        outputs.append(output)
        states = (output, memory)
        start += active
    state = [torch.cat(parts) for parts in zip(*reversed(last), strict=True)]
    expected = torch.autograd.grad(
        (torch.cat(outputs), *state),
        [hidden, cell, *gates_of, *projections],
        tuple(gradient.double() for gradient in (incoming.outputs, *incoming.state)),
    )
    done = way(run)
    gradients = back(run, done, incoming)
    num_steps = len(run.batch_sizes)
    parts = [
        (done.outputs, torch.cat(outputs)),
        *zip(done.state, state, strict=True),
        (gradients.cell_outputs, torch.cat(cell_outputs)),
        (gradients.state.hidden, expected[0]),
        (gradients.state.cell, expected[1]),
        (gradients.gates, torch.cat(expected[2 : 2 + num_steps])),
        (gradients.projected, torch.cat(expected[2 + num_steps :])),
    ]
    for ours, exact in parts:
        assert ours.shape == exact.shape
        assert torch.allclose(ours.double(), exact, rtol=1e-4, atol=2e-5)


@each_way
def test_all_that_comes_in_is_left_as_it_is(way: Way) -> None:
    run = random_run([18, 17], dropout=0.3)
    incoming = random_gradients(run)
    given = (*run.tensors(), run.recurrent_dropout_mask, incoming.outputs, *incoming.state)
    before = [tensor.clone() for tensor in given]
    back(run, way(run), incoming)
    assert all(torch.equal(*pair) for pair in zip(given, before, strict=True))


@each_way
def test_no_gradients_of_last_states_are_zeros(way: Way) -> None:
    run = random_run([18, 17, 9])
    done, incoming = way(run), random_gradients(run)
    zeros = LstmState(*(torch.zeros_like(part) for part in run.state))
    expected = back(run, done, incoming._replace(state=zeros))
    found = back(run, done, incoming._replace(state=None))
    pairs = zip([*found[:3], *found.state], [*expected[:3], *expected.state], strict=True)
    assert all(torch.equal(*pair) for pair in pairs)


def test_the_forget_gate_alone_has_a_constant() -> None:
    run = random_run([3], cells=2)
    run.bias.copy_(torch.arange(8.0))
    assert run.gate_bias().tolist() == [0, 1, 2, 3, 5, 6, 6, 7]
    assert run.bias.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
