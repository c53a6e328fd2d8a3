import copy
import pickle
from typing import Callable, List

import pytest
import torch

from elmo_scratch.kernels.memory import FrozenWeightCache, are_frozen
from tests.kernels.frozen_weights import Change, each_change


class Counted:
    """Sums of weights by way of `FrozenWeightCache`, and how often they were computed."""

    def __init__(self) -> None:
        self.products = FrozenWeightCache[float]()
        self.times = 0

    def sum_of(self, weights: List[torch.Tensor], dtype: torch.dtype = torch.float32) -> float:
        def derive() -> float:
            self.times += 1
            return float(sum(weight.detach().to(dtype).sum() for weight in weights))

        return self.products.of(weights, dtype, derive)


def test_what_is_derived_from_frozen_weights_is_derived_once() -> None:
    counted, weights = Counted(), [torch.tensor([1.0, 2.0]), torch.tensor([4.0])]
    assert [counted.sum_of(weights) for _ in range(3)] == [7.0] * 3
    assert counted.times == 1


def test_what_is_derived_from_trained_weights_is_derived_every_time() -> None:
    counted = Counted()
    weights = [torch.tensor([1.0, 2.0]), torch.tensor([4.0], requires_grad=True)]
    assert [counted.sum_of(weights) for _ in range(3)] == [7.0] * 3
    assert counted.times == 3
    weights[1].requires_grad_(False)
    assert [counted.sum_of(weights) for _ in range(3)] == [7.0] * 3
    assert counted.times == 4


def test_weights_that_are_trained_for_a_while_are_looked_at_anew() -> None:
    counted, weight = Counted(), torch.tensor([1.0, 2.0])
    counted.sum_of([weight])
    counted.sum_of([weight.requires_grad_()])
    counted.sum_of([weight.requires_grad_(False)])
    assert counted.times == 3


@each_change
def test_a_change_is_seen(change: Change) -> None:
    module, other = torch.nn.Linear(3, 5), torch.nn.Linear(3, 5)
    counted = Counted()
    module.requires_grad_(False)
    counted.sum_of(list(module.parameters()))
    change(module, other.requires_grad_(False))
    expected = float(other.weight.sum() + other.bias.sum())
    assert counted.sum_of(list(module.parameters())) == pytest.approx(expected)
    assert counted.times == 2


def test_another_precision_is_seen() -> None:
    counted, weight = Counted(), torch.tensor([1.0, 2**-9])
    assert counted.sum_of([weight]) == 1 + 2**-9
    assert counted.sum_of([weight], torch.bfloat16) == 1
    assert counted.times == 2


def test_a_type_that_only_the_weights_change_is_seen() -> None:
    counted, layer = Counted(), torch.nn.Linear(3, 5).requires_grad_(False)
    counted.sum_of([layer.weight])
    counted.sum_of([layer.double().weight])
    counted.sum_of([layer.float().weight])
    assert counted.times == 3


def test_what_is_forgotten_is_derived_anew() -> None:
    counted, weight = Counted(), torch.tensor([1.0, 2.0])
    counted.sum_of([weight])
    counted.products.forget()
    assert counted.sum_of([weight]) == 3.0
    assert counted.times == 2


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copies_and_pickles_start_empty(
    twin_of: Callable[[FrozenWeightCache], FrozenWeightCache],
) -> None:
    products, weight = FrozenWeightCache[str](), torch.tensor([1.0, 2.0])
    products.of([weight], torch.float32, lambda: "first")
    twin = twin_of(products)
    assert twin.of([weight], torch.float32, lambda: "second") == "second"
    assert products.of([weight], torch.float32, lambda: "third") == "first"


def test_weights_are_frozen_where_none_is_trained() -> None:
    frozen, trained = torch.zeros(2), torch.zeros(2, requires_grad=True)
    assert are_frozen([frozen, frozen])
    assert not are_frozen([frozen, trained])
    assert not are_frozen([])
