from typing import Type

import pytest
import torch
from allennlp.common import Lazy, Params

from elmo_scratch.modules.mixes import FrozenMix, FunctionMix, LayerMix, TrainableMix
from elmo_scratch.modules.mixes.layer_mix import weighted_sum

NAMES = [("trainable", TrainableMix), ("frozen", FrozenMix), ("function", FunctionMix)]


def test_it_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        LayerMix(3)  # type: ignore[abstract]


@pytest.mark.parametrize("name, kind", NAMES)
def test_mixes_are_built_by_name(name: str, kind: Type[LayerMix]) -> None:
    # The embedder offers both sizes; a mix takes those that it needs.
    mix = Lazy(LayerMix, Params({"type": name})).construct(num_layers=3, width=5)
    assert type(mix) is kind
    assert mix.num_layers == 3


def test_the_trainable_mix_is_the_default() -> None:
    assert type(Lazy(LayerMix, Params({})).construct(num_layers=3, width=5)) is TrainableMix


@pytest.mark.parametrize("name, kind", NAMES)
def test_a_mix_of_layers_has_the_shape_of_one(name: str, kind: Type[LayerMix]) -> None:
    mix = Lazy(LayerMix, Params({"type": name})).construct(num_layers=3, width=5)
    assert mix(torch.randn(3, 2, 7, 5)).shape == (2, 7, 5)


@pytest.mark.parametrize("name, kind", NAMES)
def test_shares_sum_to_one(name: str, kind: Type[LayerMix]) -> None:
    mix = Lazy(LayerMix, Params({"type": name})).construct(num_layers=3, width=5)
    shares = mix.shares()
    assert shares.shape == (3,)
    assert shares.sum().item() == pytest.approx(1.0)
    assert not shares.requires_grad


@pytest.mark.parametrize("name, kind", NAMES)
def test_a_token_is_mixed_from_its_own_layers_alone(name: str, kind: Type[LayerMix]) -> None:
    mix = Lazy(LayerMix, Params({"type": name})).construct(num_layers=3, width=5)
    layers = torch.randn(3, 2, 7, 5)
    changed = layers.clone()
    changed[:, 1, 4] += 1
    differs = (mix(layers) != mix(changed)).any(dim=-1)
    assert differs.nonzero().tolist() == [[1, 4]]


def test_a_weighted_sum_by_hand() -> None:
    layers = torch.tensor([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]]).view(3, 1, 1, 2)
    mixed = weighted_sum(torch.tensor([0.5, 2.0, -1.0]), layers)
    assert mixed.tolist() == [[[0.5 + 20 - 100, 1.0 + 40 - 200]]]
