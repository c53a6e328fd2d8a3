import pytest
import torch
from allennlp.modules.scalar_mix import ScalarMix

from elmo_scratch.modules.mixes import normalize_layers

NUM_LAYERS, WIDTH = 3, 4
MASK = torch.tensor(
    [
        [True, True, True, True, True],
        [True, True, False, False, False],
        [False, False, False, False, False],
    ]
)


@pytest.fixture
def layers() -> torch.Tensor:
    """Layers of unlike scales, zero at padding."""
    generator = torch.Generator().manual_seed(13)
    drawn = torch.randn(NUM_LAYERS, *MASK.shape, WIDTH, generator=generator)
    scaled = drawn * torch.tensor([0.1, 1.0, 30.0]).view(-1, 1, 1, 1) + 5
    return scaled.masked_fill(~MASK.unsqueeze(-1), 0.0)


def test_the_real_numbers_of_a_layer_have_a_mean_of_zero_and_a_variance_of_one(
    layers: torch.Tensor,
) -> None:
    for layer in normalize_layers(layers, MASK):
        assert layer[MASK].mean().item() == pytest.approx(0, abs=1e-5)
        assert layer[MASK].var(unbiased=False).item() == pytest.approx(1, abs=1e-5)


def test_padding_stays_zero(layers: torch.Tensor) -> None:
    assert not normalize_layers(layers, MASK)[:, ~MASK].any()


def test_within_a_layer_all_numbers_are_treated_alike(layers: torch.Tensor) -> None:
    # By hand: the layers of one token with the numbers 1, 3 and 2, 6.
    given = torch.tensor([[[[1.0, 3.0]]], [[[2.0, 6.0]]]])
    normalized = normalize_layers(given, torch.tensor([[True]]))
    assert normalized.flatten().tolist() == pytest.approx([-1, 1, -1, 1])


@pytest.mark.parametrize("layer", range(NUM_LAYERS))
def test_real_positions_are_those_of_allennlp(layer: int, layers: torch.Tensor) -> None:
    weights = [-9e10] * NUM_LAYERS
    weights[layer] = 1.0
    mix = ScalarMix(NUM_LAYERS, do_layer_norm=True, initial_scalar_parameters=weights)
    with torch.no_grad():
        expected = mix(list(layers), MASK)
    assert torch.allclose(normalize_layers(layers, MASK)[layer][MASK], expected[MASK], atol=1e-6)


def test_mixed_layers_are_those_of_allennlp(layers: torch.Tensor) -> None:
    weights = [0.5, -1.0, 2.0]
    mix = ScalarMix(NUM_LAYERS, do_layer_norm=True, initial_scalar_parameters=weights)
    shares = torch.softmax(torch.tensor(weights), dim=0)
    mixed = torch.einsum("l,lbtw->btw", shares, normalize_layers(layers, MASK))
    with torch.no_grad():
        assert torch.allclose(mixed[MASK], mix(list(layers), MASK)[MASK], atol=1e-6)


def test_gradients_are_those_of_allennlp(layers: torch.Tensor) -> None:
    ours, theirs = (layers.clone().requires_grad_() for _ in range(2))
    mix = ScalarMix(NUM_LAYERS, do_layer_norm=True)
    normalize_layers(ours, MASK).mean(dim=0)[MASK].pow(3).sum().backward()
    mix(list(theirs), MASK)[MASK].pow(3).sum().backward()
    assert ours.grad is not None and theirs.grad is not None
    assert ours.grad[:, MASK].any()
    assert torch.allclose(ours.grad[:, MASK], theirs.grad[:, MASK], rtol=1e-4, atol=1e-5)


def test_more_padding_changes_nothing(layers: torch.Tensor) -> None:
    wider = torch.nn.functional.pad(layers, (0, 0, 0, 2))
    mask = torch.nn.functional.pad(MASK, (0, 2))
    assert torch.allclose(
        normalize_layers(wider, mask)[:, :, :5], normalize_layers(layers, MASK), atol=1e-6
    )


def test_a_layer_of_equal_numbers_becomes_zero() -> None:
    normalized = normalize_layers(torch.full((1, 2, 3, WIDTH), 7.0), torch.ones(2, 3).bool())
    assert normalized.abs().max() < 1e-3


def test_a_batch_of_padding_becomes_zero() -> None:
    shape = (NUM_LAYERS, 2, 3, WIDTH)
    normalized = normalize_layers(torch.zeros(shape), torch.zeros(2, 3).bool())
    assert normalized.shape == shape
    assert normalized.tolist() == torch.zeros(shape).tolist()


def test_the_layers_given_stay_as_they_are(layers: torch.Tensor) -> None:
    before = layers.clone()
    normalize_layers(layers, MASK)
    assert torch.equal(layers, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_has_room_for_the_sums(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(13)
    layers = torch.randn(2, 8, 30, 1024, generator=generator) + 0.5
    mask = torch.ones(8, 30, dtype=torch.bool)
    normalized = normalize_layers(layers.to(dtype), mask)
    assert normalized.dtype == dtype
    expected = normalize_layers(layers, mask)
    assert torch.allclose(normalized.float(), expected, rtol=0, atol=8 * torch.finfo(dtype).eps)
