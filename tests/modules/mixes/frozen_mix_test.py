from typing import List

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.mixes import FrozenMix

MASK = torch.ones(2, 5, dtype=torch.bool)


def test_the_weights_of_a_seed_are_always_the_same() -> None:
    # The softmax of 1.5410, -0.2934 and -2.1788, the first normal numbers of PyTorch's seed 0.
    assert FrozenMix(3).shares().tolist() == pytest.approx([0.8446, 0.1349, 0.0205], abs=1e-4)


def test_weights_come_from_a_seed_of_their_own() -> None:
    torch.manual_seed(1)
    first = FrozenMix(3, seed=7).shares()
    torch.manual_seed(2)
    assert torch.equal(FrozenMix(3, seed=7).shares(), first)
    assert not torch.allclose(FrozenMix(3, seed=8).shares(), first)


def test_the_draw_does_not_disturb_the_random_numbers_of_a_training() -> None:
    before = torch.get_rng_state()
    FrozenMix(3, seed=7)
    assert torch.equal(torch.get_rng_state(), before)


def test_it_mixes_by_its_weights() -> None:
    mix = FrozenMix(2)
    mix.weights = torch.tensor([0.25, 0.75])
    layers = torch.tensor([4.0, 8.0]).view(2, 1, 1, 1)
    assert mix(layers, MASK[:1, :1]).item() == pytest.approx(7.0)


def test_nothing_is_ever_trained() -> None:
    mix = FrozenMix(3)
    assert list(mix.parameters()) == []
    assert not mix(torch.randn(3, 2, 5, 7), MASK).requires_grad


def test_gradients_pass_through_to_the_layers() -> None:
    mix = FrozenMix(3)
    layers = torch.randn(3, 1, 1, 1, requires_grad=True)
    mix(layers, MASK[:1, :1]).sum().backward()
    assert layers.grad is not None
    assert torch.equal(layers.grad.flatten(), mix.shares())


def test_weights_are_kept_in_a_file() -> None:
    drawn, loaded = FrozenMix(3, seed=7), FrozenMix(3, seed=8)
    loaded.load_state_dict(drawn.state_dict())
    assert torch.equal(loaded.shares(), drawn.shares())
    assert set(drawn.state_dict()) == {"weights"}


def test_weights_can_be_given() -> None:
    assert FrozenMix(3, weights=[1.0, 0.0, 3.0]).shares().tolist() == [0.25, 0.0, 0.75]


@pytest.mark.parametrize("weights", [[1.0, 1.0], [1.0, -1.0, 1.0], [0.0] * 3, [float("nan")] * 3])
def test_weights_without_shares_are_an_error(weights: List[float]) -> None:
    with pytest.raises(ConfigurationError, match="each of the 3 layers.*none below 0.*but got"):
        FrozenMix(3, weights=weights)
