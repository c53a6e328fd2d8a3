import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.mixes import FunctionMix, GateMix, LayerDropout, TrainableMix

CPU = torch.device("cpu")
MASK = torch.ones(1, 1, dtype=torch.bool)
LAYERS = torch.tensor([1.0, 2.0, 4.0]).view(3, 1, 1, 1)


def test_each_layer_is_dropped_as_often_as_told() -> None:
    torch.manual_seed(13)
    dropout = LayerDropout(3, 0.25)
    dropped = sum((~dropout(CPU)).long() for _ in range(4000)) / 4000
    # Were all dropped, one in 64 times, all are kept.
    assert dropped.tolist() == pytest.approx([0.25 - 1 / 64] * 3, abs=0.03)


def test_some_layer_is_always_kept() -> None:
    torch.manual_seed(13)
    dropout = LayerDropout(2, 0.9)
    assert all(bool(dropout(CPU).any()) for _ in range(200))


def test_evaluation_keeps_all() -> None:
    assert LayerDropout(3, 0.9).eval()(CPU).tolist() == [True] * 3


def test_without_it_no_random_number_is_drawn() -> None:
    before = torch.get_rng_state()
    assert LayerDropout(3, 0.0)(CPU).tolist() == [True] * 3
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_that_is_no_probability_is_an_error(share: float) -> None:
    with pytest.raises(ConfigurationError, match="0 or more and below 1, but got"):
        LayerDropout(3, share)


def results_of(mix: torch.nn.Module) -> set[float]:
    """What a mix of 1, 2 and 4 gives in many batches."""
    torch.manual_seed(13)
    return {round(mix(LAYERS, MASK).item(), 4) for _ in range(300)}


def test_the_weights_of_the_layers_that_are_left_sum_to_one() -> None:
    # Of one of the three, of two, and of all.
    means = {1.0, 2.0, 4.0, 1.5, 2.5, 3.0, 2.3333}
    assert results_of(TrainableMix(3, layer_dropout=0.5)) == means
    assert results_of(GateMix(3, 1, layer_dropout=0.5)) == means
    assert results_of(TrainableMix(3, layer_dropout=0.5).eval()) == {2.3333}


def test_a_function_reads_zeros_for_a_layer_and_the_others_larger() -> None:
    mix = FunctionMix(3, 1, layer_dropout=0.5)
    with torch.no_grad():
        mix.hidden.weight.fill_(1.0)
        mix.hidden.bias.zero_()
        mix.output.weight.fill_(1.0)
        mix.output.bias.zero_()
    assert results_of(mix) == {3.0, 6.0, 12.0, 4.5, 7.5, 9.0, 7.0}
    assert results_of(mix.eval()) == {7.0}
