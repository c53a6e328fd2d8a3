"""
Triton's kernel is the reference, within rounding. It runs on a GPU or, much more slowly, in
Triton's interpreter, by `make test-triton`.
"""

from types import ModuleType
from typing import List, Tuple

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from elmo_scratch.alphabet import PADDING_ID, character_ids
from elmo_scratch.kernels import char_convolution as host
from elmo_scratch.kernels import gpu
from elmo_scratch.modules.token_encoders.char_cnn_encoder import CharacterConvolution
from tests.kernels.triton_kernels.has_triton import DEVICE, needs_triton

pytestmark = needs_triton

CHARACTERS = 12
WORDS = ["", "a", "an", "and", "word", "Überlänge", "twelve-chars"] * 2 + ["longer-than-that"]


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "FUSES", "1")
    monkeypatch.setattr(gpu, "STOPPED", {})
    monkeypatch.setattr(host, "_CHECKED", set())
    monkeypatch.setattr(host, "NUM_CHECKED", 6)
    # In the interpreter, on a CPU, nothing shall take its place.
    monkeypatch.setattr(host, "CONVOLVE", {})


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
    assert gpu.STOPPED == {} and host._CHECKED
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
    assert gpu.STOPPED == {} and host._CHECKED
    for theirs, ours in zip(*found, strict=True):
        assert ours.shape == theirs.shape and ours.any()
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * theirs.abs().max().item())


def test_only_what_is_trained_has_a_gradient(ids: torch.Tensor) -> None:
    made = convolution()
    made.convolutions[1].bias.requires_grad_()
    made(ids).sum().backward()
    with_gradient = {name for name, part in made.named_parameters() if part.grad is not None}
    assert with_gradient == {"convolutions.1.bias"} and gpu.STOPPED == {}


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
    for row in (0, 6, 14):
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
    made, right = convolution(), fused.fused_maxima
    monkeypatch.setattr(gpu, "FUSES", "0")
    expected = made(ids)
    monkeypatch.setattr(gpu, "FUSES", "")
    monkeypatch.setattr(fused, "fused_maxima", lambda *given: 1.01 * right(*given))
    assert torch.equal(made(ids), expected)
    assert "their results differ" in caplog.text and list(gpu.STOPPED) == ["char_convolution"]
    assert torch.equal(made(ids), expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_kernel_that_fails_on_the_way_back_is_not_used(
    dtype: str, ids: torch.Tensor, fused: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, "_weight_gradients", None)
    made = convolution(dtype).requires_grad_()
    made(ids).sum().backward()
    assert list(gpu.STOPPED) == ["char_convolution"]
    assert all(part.grad is not None for part in made.parameters())


def test_what_is_attached_to_the_vectors_is_not_passed_by(ids: torch.Tensor) -> None:
    made = convolution()
    made.embedding.register_forward_hook(lambda _, __, vectors: torch.zeros_like(vectors))
    assert torch.equal(made(ids)[0], made(ids)[-1]) and not host._CHECKED


def test_activations_may_be_computed_again(ids: torch.Tensor) -> None:
    made = convolution().requires_grad_()
    checkpoint(made, ids, use_reentrant=False).sum().backward()
    assert host._CHECKED and gpu.STOPPED == {}


def test_what_others_kept_in_their_own_way_is_read_too(ids: torch.Tensor) -> None:
    made = convolution().requires_grad_()
    found: List[List[torch.Tensor]] = []

    def turned(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.double().transpose(0, -1).contiguous().transpose(0, -1)

    for kept in (turned, lambda tensor: tensor):
        made.zero_grad()
        with torch.autograd.graph.saved_tensors_hooks(kept, lambda tensor: tensor):
            vectors = made(ids).sum()
        vectors.backward()
        found.append([part.grad for part in made.parameters()])
    assert host._CHECKED and gpu.STOPPED == {}
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))


def test_words_must_have_room_for_the_windows(ids: torch.Tensor) -> None:
    made = convolution()
    with pytest.raises(RuntimeError):
        made(ids[:, :9])
    assert gpu.STOPPED == {} and not host._CHECKED
