"""
Triton's kernel is the reference, within rounding. It runs on a GPU or, much more slowly, in
Triton's interpreter, by `make test-triton`.
"""

from types import ModuleType
from typing import List, Tuple

import pytest
import torch

from elmo_scratch.alphabet import PADDING_ID, character_ids
from elmo_scratch.kernels import gpu
from elmo_scratch.modules.token_encoders.char_cnn_encoder import CharacterConvolution
from tests.kernels.triton_kernels.has_triton import DEVICE, needs_triton

pytestmark = needs_triton

CHARACTERS = 12
WORDS = ["", "a", "an", "and", "word", "Überlänge", "twelve-chars"] * 5 + ["longer-than-that"]


@pytest.fixture
def fused() -> ModuleType:
    from elmo_scratch.kernels.triton_kernels import char_convolution

    return char_convolution


@pytest.fixture
def ids() -> torch.Tensor:
    words = sorted(WORDS, key=len)
    return torch.tensor([character_ids(word, CHARACTERS) for word in words], device=DEVICE)


def convolution(dtype: str = "float32", dim: int = 16) -> CharacterConvolution:
    torch.manual_seed(5)
    made = CharacterConvolution(dim, [(1, 8), (2, 40), (7, 33), (12, 3)], "tanh")
    for bias in (parameter for name, parameter in made.named_parameters() if "bias" in name):
        torch.nn.init.normal_(bias)
    made.requires_grad_(False)
    made.set_everywhere(made, dtype)
    return made.to(DEVICE)


def by_both(
    made: CharacterConvolution, ids: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> Tuple[torch.Tensor, torch.Tensor]:
    found: List[torch.Tensor] = []
    for choice in ("0", "1"):
        monkeypatch.setattr(gpu, "FUSES", choice)
        found.append(made(ids).cpu())
    assert gpu.FUSES == "1"
    return found[0], found[1]


@pytest.mark.parametrize("dim", [16, 5])
def test_it_is_the_reference(ids: torch.Tensor, dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, found = by_both(convolution(dim=dim), ids, monkeypatch)
    assert found.shape == (len(WORDS), 84) and found.all()
    assert torch.allclose(found, expected, atol=1e-5)


def test_in_bfloat16_it_is_close(ids: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    exact, _ = by_both(convolution(), ids, monkeypatch)
    _, found = by_both(convolution("bfloat16"), ids, monkeypatch)
    assert found.dtype == torch.float32 and not torch.equal(found, exact)
    assert torch.allclose(found, exact, atol=0.05)


@pytest.mark.parametrize("dim", [16, 5])
def test_gradients_are_those_of_the_reference(
    ids: torch.Tensor, dim: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = convolution(dim=dim).requires_grad_()
    torch.manual_seed(7)
    incoming = torch.randn(len(ids), 84, device=DEVICE)
    found: List[List[torch.Tensor]] = []
    for choice in ("0", "1"):
        monkeypatch.setattr(gpu, "FUSES", choice)
        made.zero_grad()
        made(ids).backward(incoming)
        found.append([part.grad for part in made.parameters()])
    assert gpu.FUSES == "1"
    for theirs, ours in zip(*found, strict=True):
        assert ours.shape == theirs.shape and ours.any()
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * theirs.abs().max().item())


def test_only_what_is_trained_has_a_gradient(
    ids: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "FUSES", "1")
    made = convolution()
    made.convolutions[1].bias.requires_grad_()
    made(ids).sum().backward()
    with_gradient = {name for name, part in made.named_parameters() if part.grad is not None}
    assert with_gradient == {"convolutions.1.bias"} and gpu.FUSES == "1"


def test_a_word_does_not_depend_on_others(ids: torch.Tensor, fused: ModuleType) -> None:
    made = convolution()
    weights = [part.weight for part in made.convolutions]
    biases = [part.bias for part in made.convolutions]

    def maxima(some: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = fused.fused_maxima(
            some, PADDING_ID, made.embedding.weight, weights, biases, torch.float32
        )
        return found

    whole = maxima(ids)
    for row in (0, 6, 35):
        assert torch.allclose(maxima(ids[row : row + 1])[0], whole[row], atol=1e-6)


def test_nan_stays_nan(ids: torch.Tensor, fused: ModuleType) -> None:
    made = convolution()
    made.embedding.weight[ids[-1, 1]] = float("nan")
    weights = [part.weight for part in made.convolutions]
    biases = [part.bias for part in made.convolutions]
    found = fused.fused_maxima(
        ids, PADDING_ID, made.embedding.weight, weights, biases, torch.float32
    )
    assert found[-1].isnan().all() and found[0].isfinite().all()


def test_a_kernel_that_differs_is_not_used_again(
    ids: torch.Tensor,
    fused: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = convolution()
    monkeypatch.setattr(gpu, "FUSES", "0")
    expected = made(ids)
    monkeypatch.setattr(gpu, "FUSES", "")
    monkeypatch.setattr(fused, "fused_maxima", lambda *_: expected + 0.1)
    assert torch.equal(made(ids), expected)
    assert gpu.FUSES == "0" and "their results differ" in caplog.text
    assert torch.equal(made(ids), expected)
