import math

import pytest
import torch

from elmo_scratch.modules.token_encoders.char_cnn_encoder import Highway

ROWS, DIM = 3, 5


@pytest.mark.parametrize("number, expected", [(3.0, 0.75 * 7 + 0.25 * 3), (-3.0, -0.25 * 3)])
def test_it_can_be_followed_on_paper(number: float, expected: float) -> None:
    highway = Highway(1)
    with torch.no_grad():
        highway.transform.weight.fill_(2.0)
        highway.transform.bias.fill_(1.0)  # 2 * 3 + 1 is 7; 2 * -3 + 1 is negative, so 0
        highway.carry.weight.zero_()
        highway.carry.bias.fill_(math.log(3))  # a gate of 3/4
    assert highway(torch.tensor([[number]])).item() == pytest.approx(expected)


@pytest.mark.parametrize("is_frozen", [False, True])
def test_it_follows_the_formula(is_frozen: bool) -> None:
    torch.manual_seed(13)
    highway = Highway(DIM).double().requires_grad_(not is_frozen)
    x = torch.randn(ROWS, DIM).double()
    gate = torch.sigmoid(x @ highway.carry.weight.t() + highway.carry.bias)
    transformed = torch.relu(x @ highway.transform.weight.t() + highway.transform.bias)
    assert torch.allclose(highway(x), gate * transformed + (1 - gate) * x, atol=1e-12)


def test_a_fresh_one_carries_most_of_what_comes() -> None:
    torch.manual_seed(13)
    highway = Highway(DIM)
    torch.nn.init.zeros_(highway.carry.weight)
    torch.nn.init.zeros_(highway.transform.weight)
    carried = 1 - 1 / (1 + math.exp(2))
    assert highway(torch.ones(1, DIM)).flatten().tolist() == pytest.approx([carried] * DIM)


def test_gradients_are_those_of_finite_differences() -> None:
    torch.manual_seed(13)
    highway = Highway(DIM).double()
    vectors = torch.randn(ROWS, DIM, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda vectors, *_: highway(vectors), (vectors, *highway.parameters())
    )


def test_names_of_its_tensors_are_a_file_format() -> None:
    assert set(Highway(DIM).state_dict()) == {
        "transform.weight",
        "transform.bias",
        "carry.weight",
        "carry.bias",
    }
