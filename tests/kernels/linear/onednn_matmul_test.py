from typing import Any, List

import pytest
import torch

from elmo_scratch.kernels import onednn
from elmo_scratch.kernels.onednn import can_multiply, multiply


def exact(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return (left.double() @ right.double()).float()


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="there is no oneDNN")
class TestMultiply:
    @pytest.mark.parametrize("inputs", [1, 15, 16, 100, 1280])
    @pytest.mark.parametrize("rows, columns", [(1, 7), (700, 33), (33, 700)])
    @pytest.mark.parametrize("left_is_turned", [False, True])
    @pytest.mark.parametrize("right_is_turned", [False, True])
    @pytest.mark.parametrize("is_added", [False, True])
    def test_it_is_the_product(
        self,
        inputs: int,
        rows: int,
        columns: int,
        left_is_turned: bool,
        right_is_turned: bool,
        is_added: bool,
    ) -> None:
        torch.manual_seed(13)
        left, right = torch.randn(rows, inputs), torch.randn(inputs, columns)
        summand = torch.randn(columns) if is_added else None
        expected = exact(left, right) + (0 if summand is None else summand)
        if left_is_turned:
            left = left.t().contiguous().t()
        if right_is_turned:
            right = right.t().contiguous().t()
        result = multiply(left, right, summand)
        assert result.is_contiguous() or (left_is_turned and result.t().is_contiguous())
        assert torch.allclose(result, expected, rtol=1e-5, atol=2e-4)

    @pytest.mark.parametrize("inputs", [32, 41])
    def test_a_large_result(self, inputs: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(onednn, "LARGE_RESULT", 2**16)
        left, right = torch.randn(inputs, 1100).t(), torch.randn(inputs, 1100)
        assert torch.allclose(multiply(left, right), exact(left, right), atol=1e-4)

    def test_gaps_between_rows(self) -> None:
        left, right = torch.randn(64, 90)[:, 3:53], torch.randn(50, 90)[:, 20:70]
        assert torch.allclose(multiply(left, right), exact(left, right), atol=1e-4)
        turned, other = torch.randn(64, 900)[:, 20:820].t(), torch.randn(64, 90)[:, :9]
        assert torch.allclose(multiply(turned, other), exact(turned, other), atol=1e-4)

    def test_it_needs_few_kernels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """oneDNN keeps one for each number of inputs: there are only multiples."""
        seen: List[int] = []
        multiply_rows = onednn.linear

        def noting(vectors: torch.Tensor, weight: torch.Tensor, *bias: Any) -> torch.Tensor:
            seen.append(weight.size(1))
            return multiply_rows(vectors, weight, *bias)

        monkeypatch.setattr(onednn, "linear", noting)
        for rows in (15, 16, 129, 147):
            for outputs in (8, 800):
                gradients, vectors = torch.randn(rows, outputs), torch.randn(rows, 9)
                made_of = multiply(gradients.t(), vectors)
                assert torch.allclose(made_of, exact(gradients.t(), vectors), atol=1e-4)
        assert seen == [16, 16, 128, 128, 144, 144]


def test_what_it_is_for() -> None:
    left, right = torch.randn(4, 5), torch.randn(5, 6)
    assert can_multiply(left, right) is torch.backends.mkldnn.is_available()
    assert not can_multiply(left.double(), right.double())
    assert not can_multiply(left.bfloat16(), right.bfloat16())
    assert not can_multiply(left[:0], right)
    assert not can_multiply(left, right[:, :0])
    assert not can_multiply(left, right, torch.randn(4, 6))
    with torch.backends.mkldnn.flags(enabled=False):
        assert not can_multiply(left, right)
