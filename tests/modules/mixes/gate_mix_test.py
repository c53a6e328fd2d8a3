import math

import pytest
import torch

from elmo_scratch.modules.mixes import GateMix

MASK = torch.tensor([[True, True, False]])
LAYERS = torch.tensor([[1.0, 2.0, 9.0], [3.0, 4.0, 9.0]]).view(2, 1, 3, 1)


def test_it_starts_from_the_mean_of_the_layers() -> None:
    mixed = GateMix(2, 1)(LAYERS, MASK)
    assert mixed[MASK].flatten().tolist() == pytest.approx([2.0, 3.0])


def by_hand(layer_dropout: float = 0.0) -> GateMix:
    """Its second weight is as many times its first as e to the second layer."""
    mix = GateMix(2, 1, layer_dropout=layer_dropout)
    with torch.no_grad():
        mix.gate.weight.copy_(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
    return mix


def test_each_token_has_weights_of_its_own() -> None:
    mix = by_hand()
    with torch.no_grad():
        mix.gamma.fill_(10.0)
    expected = [
        10 * (first + math.exp(second) * second) / (1 + math.exp(second))
        for first, second in [(1.0, 3.0), (2.0, 4.0)]
    ]
    assert mix(LAYERS, MASK)[MASK].flatten().tolist() == pytest.approx(expected)


def second_share(layers: torch.Tensor, mask: torch.Tensor) -> float:
    """What `by_hand` gives the second layer, in the mean."""
    return torch.sigmoid(layers[1, ..., 0][mask]).mean().item()


@pytest.mark.parametrize("layer_dropout", [0.0, 0.5])
def test_shares_are_those_of_the_last_batch_of_a_training(layer_dropout: float) -> None:
    mix = by_hand(layer_dropout)
    assert mix.shares().tolist() == [0.5, 0.5]
    mix(-LAYERS, MASK)
    second = second_share(LAYERS, MASK)
    for _ in range(8):
        mix(LAYERS, MASK)
        assert mix.shares().tolist() == pytest.approx([1 - second, second])
    mix(LAYERS, torch.zeros_like(MASK))  # no token, nothing new
    assert mix.shares().tolist() == pytest.approx([1 - second, second])


def test_shares_are_those_of_a_whole_evaluation() -> None:
    mix = by_hand()
    one, other = torch.tensor([[True, False, False]]), torch.tensor([[False, True, True]])
    for _ in range(2):
        mix.train()(-LAYERS, MASK)
        mix.eval()
        for mask in (one, torch.zeros_like(MASK), other):
            mix(LAYERS, mask)
        second = second_share(LAYERS, torch.ones_like(MASK))
        assert mix.shares().tolist() == pytest.approx([1 - second, second])


def test_gradients_reach_every_parameter() -> None:
    torch.manual_seed(13)
    mix = GateMix(3, 5)
    mix(torch.randn(3, 2, 7, 5), torch.ones(2, 7, dtype=torch.bool)).sum().backward()
    for name, parameter in mix.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name


def test_gradients_are_right() -> None:
    torch.manual_seed(13)
    mix = GateMix(3, 4).double()
    torch.nn.init.normal_(mix.gate.weight)
    layers = torch.randn(3, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.ones(2, 3, dtype=torch.bool)
    assert torch.autograd.gradcheck(lambda given: mix(given, mask), layers)


def test_names_of_its_tensors_are_a_file_format() -> None:
    assert set(GateMix(3, 5).state_dict()) == {"gate.weight", "gate.bias", "gamma"}
