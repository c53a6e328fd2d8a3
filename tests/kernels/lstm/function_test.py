import gc
from typing import Dict, List, Optional, Sequence, Tuple

import pytest
import torch

from elmo_scratch.kernels.lstm.function import LstmCache, run_lstm
from elmo_scratch.kernels.lstm.run import Clips, LstmRun, LstmWeights
from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules import LstmState, PackedOrder, ProjectedLstm
from elmo_scratch.modules.sequences import PackedVectors
from tests.kernels.lstm.plain_lstm import Clipped, mask_of, read_packed, read_plainly

LENGTHS = [2, 3, 0, 1]
BATCH, POSITIONS, INPUT_DIM, DIM, CELL = 4, 3, 2, 5, 3
SEED_OF_DROPOUT = 5

Gradients = Dict[str, torch.Tensor]

each_form = pytest.mark.parametrize(
    "dim, limit, recurrent_dropout",
    [(DIM, 0.6, 0.0), (DIM, None, 0.0), (CELL, 0.6, 0.0), (CELL, None, 0.0), (DIM, 0.6, 0.4)],
)
"""With and without a projection, clips and dropout."""


def random_lstm(dim: int, limit: Optional[float], recurrent_dropout: float = 0.0) -> ProjectedLstm:
    torch.manual_seed(13)
    lstm = ProjectedLstm(
        INPUT_DIM,
        dim,
        CELL,
        cell_clip=limit,
        projection_clip=limit,
        recurrent_dropout=recurrent_dropout,
    ).double()
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter)
    return lstm


def random_inputs(dim: int) -> Tuple[torch.Tensor, LstmState]:
    """Inputs and states that ask for gradients."""
    inputs = torch.randn(BATCH, POSITIONS, INPUT_DIM, dtype=torch.double)
    hidden, cell = torch.randn(BATCH, dim).double(), torch.randn(BATCH, CELL).double()
    return inputs.requires_grad_(), LstmState(hidden.requires_grad_(), cell.requires_grad_())


def dropout_of(
    lstm: ProjectedLstm, like: torch.Tensor, lengths: Sequence[int] = LENGTHS
) -> torch.Tensor:
    """What recurrent dropout multiplies the sentences of a batch with, after `manual_seed`."""
    in_reading_order = torch.nn.functional.dropout(torch.ones_like(like), lstm.recurrent_dropout)
    return in_reading_order[PackedOrder.of(mask_of(lengths)).unsorted_indices]


def gradients_of(
    outputs: Tuple[torch.Tensor, ...],
    lstm: ProjectedLstm,
    inputs: torch.Tensor,
    state: LstmState,
) -> Gradients:
    """The gradients of a sum in which each number of outputs and last states has its own weight."""
    torch.manual_seed(7)
    loss = torch.stack([(part * torch.randn_like(part)).sum() for part in outputs]).sum()
    named = {"inputs": inputs, "hidden": state.hidden, "cell": state.cell}
    named.update(lstm.named_parameters())
    gradients = torch.autograd.grad(loss, list(named.values()))
    return dict(zip(named, gradients, strict=True))


def plain_gradients(
    lstm: ProjectedLstm, inputs: torch.Tensor, state: LstmState, clipped: List[Clipped]
) -> Gradients:
    torch.manual_seed(SEED_OF_DROPOUT)
    scale = dropout_of(lstm, state.hidden) if lstm.recurrent_dropout else None
    done = read_plainly(lstm, inputs, LENGTHS, state, dropout_mask=scale, clipped=clipped)
    return gradients_of(done, lstm, inputs, state)


@pytest.mark.usefixtures("each_memory_cells")
@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("lengths", [LENGTHS, [2, 0, 2, 0]])
@each_form
def test_gradients_are_those_of_finite_differences(
    dim: int,
    limit: Optional[float],
    recurrent_dropout: float,
    lengths: List[int],
    goes_on: bool,
) -> None:
    lstm = random_lstm(dim, limit, recurrent_dropout)
    inputs, state = random_inputs(dim)
    names, weights = zip(*lstm.named_parameters(), strict=True)

    def read(
        inputs: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor, *weights: torch.Tensor
    ) -> Tuple[torch.Tensor, ...]:
        torch.manual_seed(SEED_OF_DROPOUT)
        named = dict(zip(names, weights, strict=True))
        mask = mask_of(lengths)
        order = PackedOrder.of(mask)
        packed = inputs[:, : mask.size(1)].flatten(0, 1)[order.left_to_right]
        start = LstmState(hidden, cell).rows(order.sorted_indices)
        done = torch.func.functional_call(
            lstm, named, (PackedVectors(packed, order.batch_sizes), start)
        )
        return (done.outputs, *done.state) if goes_on else (done.outputs,)

    assert torch.autograd.gradcheck(read, (inputs, *state, *weights))


@pytest.mark.usefixtures("each_memory_cells")
@each_form
def test_gradients_are_those_of_ordinary_operations(
    dim: int, limit: Optional[float], recurrent_dropout: float
) -> None:
    lstm = random_lstm(dim, limit, recurrent_dropout)
    inputs, state = random_inputs(dim)
    clipped: List[Clipped] = []
    expected = plain_gradients(lstm, inputs, state, clipped)
    torch.manual_seed(SEED_OF_DROPOUT)
    ours = gradients_of(read_packed(lstm, inputs, LENGTHS, state), lstm, inputs, state)
    assert set(ours) == set(expected)
    for name, gradient in ours.items():
        assert torch.allclose(gradient, expected[name], rtol=0, atol=1e-10), name
        assert gradient.any(), name
    bites = [sum(numbers) for numbers in zip(*clipped, strict=True)]
    assert (0 < bites[0] < bites[2]) == (limit is not None)
    assert (0 < bites[1] < bites[3]) == (limit is not None and dim == DIM)


@pytest.mark.usefixtures("each_memory_cells")
def test_an_output_alone_and_a_last_state_alone_have_gradients() -> None:
    lstm = random_lstm(DIM, 0.6)
    inputs, state = random_inputs(DIM)
    for number in range(3):
        (ours,) = torch.autograd.grad(
            read_packed(lstm, inputs, LENGTHS, state)[number].square().sum(), [inputs]
        )
        (expected,) = torch.autograd.grad(
            read_plainly(lstm, inputs, LENGTHS, state)[number].square().sum(), [inputs]
        )
        assert torch.allclose(ours, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "name", ["inputs", "hidden", "cell", "input_weight", "recurrent_weight", "bias"]
)
def test_what_asks_for_a_gradient_alone_gets_it(name: str) -> None:
    lstm = random_lstm(DIM, 0.6)
    inputs, state = random_inputs(DIM)
    expected = plain_gradients(lstm, inputs, state, [])[name]
    asking = {"inputs": inputs, "hidden": state.hidden, "cell": state.cell}
    asking.update(lstm.named_parameters())
    for tensor in asking.values():
        tensor.requires_grad_(False)
    asking[name].requires_grad_()
    torch.manual_seed(7)
    done = read_packed(lstm, inputs, LENGTHS, state)
    loss = torch.stack([(part * torch.randn_like(part)).sum() for part in done]).sum()
    assert torch.allclose(torch.autograd.grad(loss, [asking[name]])[0], expected, atol=1e-10)


def test_going_back_twice_adds_the_same_gradient_again() -> None:
    lstm = random_lstm(DIM, 0.6)
    inputs, state = random_inputs(DIM)
    loss = read_packed(lstm, inputs, LENGTHS, state).outputs.square().sum()
    first = torch.autograd.grad(loss, [inputs, lstm.bias], retain_graph=True)
    again = torch.autograd.grad(loss, [inputs, lstm.bias])
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one, other)


def tensors_that_are_held() -> Dict[Tuple[int, torch.Size], torch.Tensor]:
    """All that there are, by identity and shape: other tests leave some behind."""
    there = [thing for thing in gc.get_objects() if type(thing) is torch.Tensor]
    return {(id(tensor), tensor.shape): tensor for tensor in there}


@pytest.mark.usefixtures("each_memory_cells")
def test_nothing_of_the_steps_outlives_the_way_back() -> None:
    gc.collect()
    before = tensors_that_are_held()
    lstm = random_lstm(DIM, 0.6)
    inputs, state = random_inputs(DIM)
    # A trainer holds on to the loss of one batch until it has that of the next.
    outputs = read_packed(lstm, inputs, LENGTHS, state)
    torch.stack([part.sum() for part in outputs]).sum().backward()
    more = tensors_that_are_held().keys() - before.keys()
    assert not [key for key in more if key[1][1:] == (4 * CELL,)]
    with pytest.raises(RuntimeError, match="second time"):
        outputs[0].sum().backward()


def test_gradients_of_gradients_are_refused() -> None:
    lstm = random_lstm(DIM, None)
    inputs, state = random_inputs(DIM)
    loss = read_packed(lstm, inputs, LENGTHS, state).outputs.square().sum()
    (gradient,) = torch.autograd.grad(loss, [inputs], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_a_weight_that_changes_before_the_way_back_is_noticed() -> None:
    lstm = random_lstm(DIM, None)
    inputs, state = random_inputs(DIM)
    loss = read_packed(lstm, inputs, LENGTHS, state).outputs.sum()
    with torch.no_grad():
        lstm.recurrent_weight.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.usefixtures("each_memory_cells")
@pytest.mark.parametrize("dim", [37, 67])
def test_in_bfloat16_outputs_and_gradients_point_where_those_in_float32_do(dim: int) -> None:
    torch.manual_seed(13)
    lstm = ProjectedLstm(31, dim, 67)
    lengths = [7, 5, 11, 2]
    inputs = torch.randn(4, 11, 31, requires_grad=True)
    state = LstmState(torch.randn(4, dim), torch.randn(4, 67))
    state = LstmState(*(part.requires_grad_() for part in state))
    found: Dict[str, Gradients] = {}
    for dtype in ("float32", "bfloat16"):
        MixedPrecision.set_everywhere(lstm, dtype)
        done = read_packed(lstm, inputs, lengths, state)
        found[dtype] = {f"new {name}": part.detach() for name, part in done._asdict().items()}
        found[dtype].update(gradients_of(done, lstm, inputs, state))
    for name, exact in found["float32"].items():
        rounded = found["bfloat16"][name]
        assert rounded.dtype == torch.float32
        assert not torch.equal(rounded, exact)
        assert torch.cosine_similarity(rounded.flatten(), exact.flatten(), dim=0) >= 0.999, name
        assert (rounded.norm() / exact.norm()).item() == pytest.approx(1.0, abs=0.02), name


@pytest.mark.parametrize("limit, recurrent_dropout", [(None, 0.0), (0.6, 0.0), (0.6, 0.4)])
def test_many_long_sentences_too_have_the_gradients_of_ordinary_operations(
    limit: Optional[float], recurrent_dropout: float
) -> None:
    torch.manual_seed(13)
    lstm = ProjectedLstm(24, 64, 128, cell_clip=limit, projection_clip=limit)
    lstm.recurrent_dropout = recurrent_dropout
    lengths = [7, 3, 9, 1, 5] * 4 * torch.get_num_threads()
    inputs = torch.randn(len(lengths), 9, 24).requires_grad_()
    state = LstmState(torch.randn(len(lengths), 64), torch.randn(len(lengths), 128))
    state = LstmState(*(part.requires_grad_() for part in state))
    torch.manual_seed(SEED_OF_DROPOUT)
    ours = gradients_of(read_packed(lstm, inputs, lengths, state), lstm, inputs, state)
    torch.manual_seed(SEED_OF_DROPOUT)
    scale = dropout_of(lstm, state.hidden, lengths) if recurrent_dropout else None
    plain = read_plainly(lstm, inputs, lengths, state, dropout_mask=scale)
    for name, expected in gradients_of(plain, lstm, inputs, state).items():
        assert (ours[name] - expected).norm() <= 1e-5 * expected.norm(), name


@pytest.mark.usefixtures("each_memory_cells")
def test_in_bfloat16_too_what_a_clip_has_cut_gets_no_gradient() -> None:
    lstm = random_lstm(DIM, None).float()
    lstm.projection_clip = 0.7  # bfloat16 doesn't know this number
    MixedPrecision.set_everywhere(lstm, "bfloat16")
    torch.nn.init.constant_(lstm.get_parameter("projection_weight"), 100.0)
    outputs = lstm(PackedVectors(torch.randn(3, INPUT_DIM), [3])).outputs
    assert outputs.abs().flatten().tolist() == pytest.approx([0.7] * 3 * DIM, abs=0.01)
    outputs.sum().backward()
    for name, parameter in lstm.named_parameters():
        assert parameter.grad is not None and not parameter.grad.any(), name


@pytest.mark.usefixtures("each_memory_cells")
@pytest.mark.parametrize("with_onednn", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_may_round_what_it_multiplies(dtype: torch.dtype, with_onednn: bool) -> None:
    torch.manual_seed(13)
    lstm = ProjectedLstm(31, 37, 67)
    inputs = torch.randn(4, 11, 31, requires_grad=True)
    state = LstmState(torch.randn(4, 37), torch.randn(4, 67))
    state = LstmState(*(part.requires_grad_() for part in state))
    found: List[Gradients] = []
    for is_rounded in (False, True):
        with (
            torch.backends.mkldnn.flags(enabled=with_onednn),
            torch.autocast("cpu", dtype=dtype, enabled=is_rounded),
        ):
            done = read_packed(lstm, inputs, [7, 5, 11, 2], state)
        found.append(gradients_of(tuple(part.float() for part in done), lstm, inputs, state))
    for name, exact in found[0].items():
        cosine = torch.cosine_similarity(found[1][name].flatten(), exact.flatten(), dim=0)
        assert cosine >= 0.999, name


@pytest.mark.usefixtures("each_memory_cells")
def test_it_takes_gates_in_the_order_of_the_file_format() -> None:
    # One cell, no projection: i opens, j is tanh(2), f closes, o opens.
    input_weight = torch.zeros(4, 1, dtype=torch.double, requires_grad=True)
    recurrent_weight, no_projection = torch.zeros(4, 1).double(), torch.zeros(0, 1).double()
    run = LstmRun(
        LstmWeights(input_weight, recurrent_weight, no_projection),
        torch.double,
        torch.tensor([100.0, 2.0, -100.0, 100.0], dtype=torch.double),
        torch.ones(1, 1).double(),
        [1],
        LstmState(torch.zeros(1, 1).double(), torch.full((1, 1), 5.0).double()),
        Clips(None, None),
        None,
    )
    done = run_lstm(run, LstmCache())
    tanh = torch.tanh(torch.tensor(2.0).double())
    assert done.state.cell.item() == pytest.approx(tanh.item())
    assert done.outputs.item() == done.state.hidden.item()
    assert done.outputs.item() == pytest.approx(torch.tanh(tanh).item())
    done.state.cell.sum().backward()
    assert input_weight.grad.flatten().tolist() == pytest.approx([0, 1 - tanh.item() ** 2, 0, 0])
