import copy
from typing import List, Tuple

import pytest
import torch

from elmo_scratch.kernels import Dropout
from elmo_scratch.modules import LstmState, ProjectedLstm
from elmo_scratch.modules.sequences import PackedVectors
from tests.kernels.lstm.plain_lstm import PaddedOutput, read_packed, read_plainly

LENGTHS = [3, 5, 0, 1, 5]
BATCH, POSITIONS, SEED = 5, 5, 5


def lstm_of(sizes: Tuple[int, int, int], dtype: torch.dtype, share: float) -> ProjectedLstm:
    """In training, with gates that differ."""
    torch.manual_seed(13)
    lstm = ProjectedLstm(*sizes, cell_clip=0.6, recurrent_weight_dropout=share).to(dtype)
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter, std=parameter.size(-1) ** -0.5)
    return lstm


def what_it_reads(lstm: ProjectedLstm) -> Tuple[torch.Tensor, LstmState]:
    like = lstm.input_weight
    inputs = torch.randn(BATCH, POSITIONS, like.size(1)).to(like)
    hidden, cell = torch.randn(BATCH, lstm.dim), torch.randn(BATCH, lstm.cell_size)
    return inputs, LstmState(hidden.to(like), cell.to(like))


def scales_after(seed: int, lstm: ProjectedLstm) -> torch.Tensor:
    """What a run after `manual_seed` multiplies the recurrent weights with."""
    torch.manual_seed(seed)
    scales: torch.Tensor = Dropout(lstm.weight_dropout.p)(torch.ones_like(lstm.recurrent_weight))
    return scales


def dropped_by_hand(lstm: ProjectedLstm, scales: torch.Tensor) -> ProjectedLstm:
    """Without dropout, its recurrent weights scaled or zero."""
    other = copy.deepcopy(lstm).eval()
    with torch.no_grad():
        other.recurrent_weight.mul_(scales)
    return other


def gradients_of(done: PaddedOutput, lstm: ProjectedLstm) -> List[torch.Tensor]:
    loss = sum((part * part.detach().cos()).sum() for part in done)
    assert isinstance(loss, torch.Tensor)
    return list(torch.autograd.grad(loss, list(lstm.parameters())))


@pytest.mark.parametrize(
    "sizes, dtype, atol",
    [((3, 11, 7), torch.double, 1e-12), ((24, 64, 128), torch.float32, 1e-4)],
)
def test_all_sentences_and_steps_read_the_same_weights(
    sizes: Tuple[int, int, int], dtype: torch.dtype, atol: float
) -> None:
    lstm = lstm_of(sizes, dtype, 0.5)
    given, kept = what_it_reads(lstm), lstm.recurrent_weight.detach().clone()
    scales = scales_after(SEED, lstm)
    other = dropped_by_hand(lstm, scales)
    assert 0.3 < (scales == 0).double().mean() < 0.7
    torch.manual_seed(SEED)
    done = read_packed(lstm, given[0], LENGTHS, given[1])
    expected = read_plainly(other, given[0], LENGTHS, given[1])
    for ours, plain in zip(done, expected, strict=True):
        assert torch.allclose(ours, plain, rtol=0, atol=atol)
    for (name, _), ours, plain in zip(
        lstm.named_parameters(), gradients_of(done, lstm), gradients_of(expected, other)
    ):
        if name == "recurrent_weight":
            plain = plain * scales
            assert not ours[scales == 0].any() and ours.any()
        assert torch.allclose(ours, plain, rtol=1e-4, atol=atol), name
    assert torch.equal(lstm.recurrent_weight, kept)


def test_gradients_are_those_of_finite_differences() -> None:
    lstm = lstm_of((2, 5, 3), torch.double, 0.4)
    inputs, state = what_it_reads(lstm)
    names, weights = zip(*lstm.named_parameters(), strict=True)

    def read(inputs: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(SEED)
        named = dict(zip(names, weights, strict=True))
        packed = PackedVectors(inputs, [BATCH] * POSITIONS)
        done = torch.func.functional_call(lstm, named, (packed, state))
        return done.outputs

    assert torch.autograd.gradcheck(read, (inputs.flatten(0, 1).requires_grad_(), *weights))


def test_each_run_drops_others_and_a_seed_repeats_them() -> None:
    lstm = lstm_of((3, 11, 7), torch.double, 0.5)
    inputs, state = what_it_reads(lstm)
    torch.manual_seed(SEED)
    one, other = (read_packed(lstm, inputs, LENGTHS, state).outputs for _ in range(2))
    assert not torch.allclose(one, other)
    torch.manual_seed(SEED)
    assert torch.equal(read_packed(lstm, inputs, LENGTHS, state).outputs, one)


@pytest.mark.parametrize("share, is_trained", [(0.5, False), (0.0, True)])
def test_without_dropout_no_random_number_is_drawn(share: float, is_trained: bool) -> None:
    lstm = lstm_of((3, 11, 7), torch.double, share).train(is_trained)
    inputs, state = what_it_reads(lstm)
    before = torch.get_rng_state()
    done = read_packed(lstm, inputs, LENGTHS, state)
    assert torch.equal(torch.get_rng_state(), before)
    for ours, plain in zip(done, read_plainly(lstm, inputs, LENGTHS, state), strict=True):
        assert torch.allclose(ours, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("is_frozen", [True, False])
@pytest.mark.parametrize("dtype", [torch.double, torch.float32])
def test_no_dropped_copy_outlives_its_run(dtype: torch.dtype, is_frozen: bool) -> None:
    # So few weights are dropped that a cache would take the copy of one run for that of another.
    lstm = lstm_of((24, 64, 128), dtype, 0.001).requires_grad_(not is_frozen)
    inputs, state = what_it_reads(lstm)
    with torch.no_grad():
        for seed in range(5):
            other = dropped_by_hand(lstm, scales_after(seed, lstm))
            torch.manual_seed(seed)
            done = read_packed(lstm, inputs, LENGTHS, state)
            expected = read_packed(other, inputs, LENGTHS, state)
            assert torch.allclose(done.outputs, expected.outputs, rtol=0, atol=1e-7)
            assert lstm._cache.products._kept is lstm._cache.stack._kept is None
        whole = read_packed(lstm.eval(), inputs, LENGTHS, state).outputs
    assert not torch.allclose(whole, done.outputs, rtol=0, atol=1e-7)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_out_of_range_is_an_error(share: float) -> None:
    with pytest.raises(ValueError, match="expected `recurrent_weight_dropout` from 0 on and below"):
        ProjectedLstm(3, 11, 7, recurrent_weight_dropout=share)
