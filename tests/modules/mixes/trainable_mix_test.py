import math
from typing import Any, Dict

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.nn.regularizers import RegularizerApplicator

from elmo_scratch.modules.mixes import TrainableMix

LAYERS = torch.tensor([3.0, 6.0]).view(2, 1, 1, 1)
MASK = torch.ones(1, 1, dtype=torch.bool)


def test_it_starts_from_the_mean_of_the_layers() -> None:
    mix = TrainableMix(2)
    assert mix(LAYERS, MASK).item() == pytest.approx(4.5)
    assert mix.shares().tolist() == pytest.approx([0.5, 0.5])


def test_shares_follow_the_paper() -> None:
    mix = TrainableMix(2)
    mix.weights.data = torch.tensor([0.0, 1.0]).log1p()  # shares 1/3 and 2/3
    mix.gamma.data = torch.tensor(2.0)
    assert mix.shares().tolist() == pytest.approx([1 / 3, 2 / 3])
    assert mix(LAYERS, MASK).item() == pytest.approx(2 * (3 / 3 + 6 * 2 / 3))


def test_the_task_learns_the_weights_and_the_scale() -> None:
    mix = TrainableMix(2)
    mix(LAYERS, MASK).sum().backward()
    # d/ds_l of γ Σ softmax(s) h is share_l * (h_l - mean), d/dγ is the mean.
    assert mix.weights.grad is not None and mix.gamma.grad is not None
    assert mix.weights.grad.tolist() == pytest.approx([0.5 * (3 - 4.5), 0.5 * (6 - 4.5)])
    assert mix.gamma.grad.item() == pytest.approx(4.5)


def test_names_of_its_tensors_are_a_file_format() -> None:
    assert set(TrainableMix(2).state_dict()) == {"weights", "gamma"}


def test_it_starts_from_the_weights_that_it_is_given() -> None:
    mix = TrainableMix(2, initial_weights=[0.0, math.log(2)])  # shares 1/3 and 2/3
    assert mix.shares().tolist() == pytest.approx([1 / 3, 2 / 3])
    assert mix(LAYERS, MASK).item() == pytest.approx(5.0)


def test_too_few_initial_weights_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match="each of the 3 layers.*but got 2"):
        TrainableMix(3, initial_weights=[0.0, 1.0])


@pytest.mark.parametrize(
    "settings",
    [
        {"initial_weights": [0.0, math.nan]},
        {"initial_weights": [0.0, math.inf]},
        {"initial_weights": [0.0, -math.inf]},
        {"gamma": math.nan},
    ],
)
def test_numbers_that_nothing_can_be_computed_with_are_an_error(
    settings: Dict[str, Any],
) -> None:
    with pytest.raises(
        ConfigurationError, match="expected `initial_weights` and a `gamma` that are finite"
    ):
        TrainableMix(2, **settings)


@pytest.mark.parametrize("weight", [-10_000.0, -9e10])
def test_a_layer_can_be_left_out_by_its_weight(weight: float) -> None:
    mix = TrainableMix(2, initial_weights=[weight, 0.0], layer_dropout=0.5)
    for _ in range(30):
        mixed = mix.train()(LAYERS, MASK)
        assert mixed.item() == pytest.approx(6.0)
        mixed.backward()
    assert mix.weights.grad is not None and mix.weights.grad.isfinite().all()
    mix.eval()
    assert mix(LAYERS, MASK).item() == 6.0


def test_weights_that_it_was_given_are_learned_all_the_same() -> None:
    mix = TrainableMix(2, initial_weights=[0.0, 1.0])
    mix(LAYERS, MASK).sum().backward()
    assert mix.weights.grad is not None and mix.weights.grad.all()


def test_the_scale_can_be_fixed() -> None:
    mix = TrainableMix(2, gamma=2)  # as Jsonnet writes 2.0
    assert mix.gamma.dtype == torch.float
    assert mix(LAYERS, MASK).item() == pytest.approx(9.0)
    mix(LAYERS, MASK).sum().backward()
    assert mix.gamma.grad is None and mix.weights.grad is not None
    assert set(mix.state_dict()) == {"weights", "gamma"}


def test_allennlps_regularizers_hold_the_weights() -> None:
    regexes = [[r".*mix\.weights", {"type": "l2", "alpha": 0.001}]]
    regularizer = RegularizerApplicator.from_params(Params({"regexes": regexes}))
    mixes = {"mix": TrainableMix(2, initial_weights=[1.0, 2.0]), "output_mix": TrainableMix(2)}
    model = torch.nn.ModuleDict({"embedder": torch.nn.ModuleDict(mixes)})
    penalty = regularizer(model)
    assert penalty.item() == pytest.approx(0.001 * (1 + 4))
    penalty.backward()
    assert mixes["mix"].weights.grad is not None
    assert mixes["mix"].weights.grad.tolist() == pytest.approx([0.002, 0.004])
    assert mixes["mix"].gamma.grad is None
