import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.mixes import FunctionMix

MASK = torch.ones(1, 1, dtype=torch.bool)


def by_hand() -> FunctionMix:
    """
    Of two layers of width 1: hidden units relu(h_0 - h_1) and relu(h_1 - h_0 + 1), output
    2 * first + 3 * second + 5.
    """
    mix = FunctionMix(2, 1, hidden_dim=2)
    mix.hidden.load_state_dict(
        {"weight": torch.tensor([[1.0, -1.0], [-1.0, 1.0]]), "bias": torch.tensor([0.0, 1.0])}
    )
    mix.output.load_state_dict({"weight": torch.tensor([[2.0, 3.0]]), "bias": torch.tensor([5.0])})
    return mix


@pytest.mark.parametrize(
    "first, second, expected",
    [(7.0, 3.0, 2 * 4 + 5), (3.0, 7.0, 3 * 5 + 5), (4.0, 4.0, 3 * 1 + 5), (4.5, 4.0, 1 + 1.5 + 5)],
)
def test_made_by_hand_it_can_be_followed_on_paper(
    first: float, second: float, expected: float
) -> None:
    mixed = by_hand()(torch.tensor([first, second]).view(2, 1, 1, 1), MASK)
    assert mixed.item() == pytest.approx(expected)


def test_layers_lie_side_by_side_in_their_order() -> None:
    mix = FunctionMix(3, 2, hidden_dim=6)
    with torch.no_grad():
        mix.hidden.weight.copy_(torch.eye(6))
        mix.hidden.bias.zero_()
        mix.output.weight.copy_(torch.eye(6)[[1, 2]])
        mix.output.bias.zero_()
    layers = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).view(3, 1, 1, 2)
    assert mix(layers, MASK).flatten().tolist() == [2.0, 3.0]


def test_a_layers_share_is_that_of_the_weights_that_read_it() -> None:
    mix = FunctionMix(2, 2, hidden_dim=1)
    mix.hidden.weight.data = torch.tensor([[3.0, 4.0, 0.0, 15.0]])  # norms 5 and 15
    assert mix.shares().tolist() == pytest.approx([0.25, 0.75])


def test_weights_of_zero_share_evenly() -> None:
    mix = FunctionMix(2, 1)
    torch.nn.init.zeros_(mix.hidden.weight)
    assert mix.shares().tolist() == [0.5, 0.5]


def test_the_hidden_layer_is_as_wide_as_a_vector_unless_told() -> None:
    assert FunctionMix(3, 5).hidden.out_features == 5
    assert FunctionMix(3, 5, hidden_dim=7).hidden.out_features == 7


@pytest.mark.parametrize("size", [0, -3])
def test_a_hidden_layer_of_no_width_is_an_error(size: int) -> None:
    with pytest.raises(ConfigurationError, match=f"`hidden_dim` of 1 or more, but got {size}"):
        FunctionMix(2, 5, hidden_dim=size)


def test_gradients_reach_every_parameter() -> None:
    torch.manual_seed(13)
    mix = FunctionMix(3, 5)
    mix(torch.randn(3, 2, 7, 5), MASK.expand(2, 7)).sum().backward()
    for name, parameter in mix.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name


def test_names_of_its_tensors_are_a_file_format() -> None:
    assert set(FunctionMix(3, 5).state_dict()) == {
        "hidden.weight",
        "hidden.bias",
        "output.weight",
        "output.bias",
    }
