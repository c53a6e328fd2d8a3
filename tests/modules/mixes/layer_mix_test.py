from typing import Type

import pytest
import torch
from allennlp.common import Lazy, Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.mixes import (
    FrozenMix,
    FunctionMix,
    GateMix,
    LayerMix,
    MeanMix,
    TopMix,
    TrainableMix,
    normalize_layers,
    weighted_sum,
)
from tests.exports_test import REGISTERED

NAMES = [
    ("trainable", TrainableMix),
    ("frozen", FrozenMix),
    ("function", FunctionMix),
    ("gate", GateMix),
    ("mean", MeanMix),
    ("top", TopMix),
]
MASK = torch.tensor([[True] * 7, [True] * 5 + [False] * 2])

each_mix = pytest.mark.parametrize("name, kind", NAMES)


def built(name: str, **settings: object) -> LayerMix:
    """A mix as an embedder builds it, which offers both sizes; a mix takes those that it needs."""
    lazy = Lazy(LayerMix, Params({"type": name, **settings}))
    mix: LayerMix = lazy.construct(num_layers=3, width=5)
    return mix


def drawn(mix: LayerMix) -> LayerMix:
    """With weights that depend on the token where they can, as after a training."""
    for parameter in mix.parameters():
        torch.nn.init.normal_(parameter)
    return mix


@each_mix
@pytest.mark.parametrize("number", [2, 4])
def test_other_layers_than_it_was_made_for_are_an_error(
    number: int, name: str, kind: Type[LayerMix]
) -> None:
    layers = torch.ones(number, 2, 7, 5)
    with pytest.raises(ConfigurationError, match=f"expected 3 layers to mix, .* but got {number}"):
        built(name)(layers, MASK)


def test_every_registered_mix_is_tested_here() -> None:
    assert {name for name, _ in NAMES} == REGISTERED[LayerMix]


@each_mix
def test_mixes_are_built_by_name(name: str, kind: Type[LayerMix]) -> None:
    mix = built(name)
    assert type(mix) is kind
    assert mix.num_layers == 3


def test_the_trainable_mix_is_the_default() -> None:
    assert type(Lazy(LayerMix, Params({})).construct(num_layers=3, width=5)) is TrainableMix


@each_mix
def test_a_setting_that_a_mix_does_not_know_is_an_error(name: str, kind: Type[LayerMix]) -> None:
    with pytest.raises(ConfigurationError, match="layer_nrom"):
        built(name, layer_nrom=True)


@each_mix
def test_a_mix_of_layers_has_the_shape_of_one(name: str, kind: Type[LayerMix]) -> None:
    assert built(name)(torch.randn(3, 2, 7, 5), MASK).shape == (2, 7, 5)


@each_mix
def test_shares_sum_to_one(name: str, kind: Type[LayerMix]) -> None:
    mix = built(name)
    mix(torch.randn(3, 2, 7, 5), MASK)
    shares = mix.shares()
    assert shares.shape == (3,)
    assert shares.sum().item() == pytest.approx(1.0)
    assert not shares.requires_grad


@each_mix
def test_a_token_is_mixed_from_its_own_layers_alone(name: str, kind: Type[LayerMix]) -> None:
    mix = drawn(built(name))
    layers = torch.randn(3, 2, 7, 5)
    changed = layers.clone()
    changed[:, 1, 4] += 1
    differs = (mix(layers, MASK) != mix(changed, MASK)).any(dim=-1)
    assert differs.nonzero().tolist() == [[1, 4]]


@each_mix
def test_layers_are_normalised_on_request(name: str, kind: Type[LayerMix]) -> None:
    plain, normalising = drawn(built(name)), built(name, do_layer_norm=True)
    normalising.load_state_dict(plain.state_dict())
    layers = 10 * torch.randn(3, 2, 7, 5) + 3
    expected = plain(normalize_layers(layers, MASK), MASK)
    assert torch.equal(normalising(layers, MASK), expected)
    assert not torch.allclose(plain(layers, MASK)[MASK], expected[MASK])


@each_mix
def test_padding_does_not_change_what_is_normalised(name: str, kind: Type[LayerMix]) -> None:
    mix = drawn(built(name, do_layer_norm=True))
    layers = torch.randn(3, 2, 7, 5)
    changed = layers.masked_fill(~MASK.unsqueeze(-1), 99.0)
    assert torch.equal(mix(layers, MASK)[MASK], mix(changed, MASK)[MASK])


def test_a_weighted_sum_by_hand() -> None:
    layers = torch.tensor([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]]).view(3, 1, 1, 2)
    mixed = weighted_sum(torch.tensor([0.5, 2.0, -1.0]), layers)
    assert mixed.tolist() == [[[0.5 + 20 - 100, 1.0 + 40 - 200]]]
