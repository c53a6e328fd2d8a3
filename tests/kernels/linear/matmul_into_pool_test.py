from typing import Optional

import pytest
import torch

from elmo_scratch.kernels import onednn
from elmo_scratch.kernels.onednn import matmul_into_pool


@pytest.fixture(params=[False, True], ids=["PyTorch's", "oneDNN's"], autouse=True)
def each_product(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(onednn, "can_multiply", lambda *_: False)


@pytest.mark.parametrize("rows", [0, 1, 700])
@pytest.mark.parametrize("added", [None, "a row", "a matrix"])
@pytest.mark.parametrize("is_turned", [False, True])
def test_it_is_the_product(rows: int, added: Optional[str], is_turned: bool) -> None:
    torch.manual_seed(13)
    left, right = torch.randn(rows, 19), torch.randn(19, 300)
    if is_turned:
        left, right = left.t().contiguous().t(), right.t().contiguous().t()
    shapes = {"a row": (300,), "a matrix": (rows, 300)}
    summand = None if added is None else torch.randn(shapes[added])
    expected = left @ right + (0.0 if summand is None else summand)
    assert torch.allclose(matmul_into_pool(left, right, summand), expected, atol=1e-4)


def test_it_is_not_changed_by_the_next_one() -> None:
    first, second = (
        matmul_into_pool(torch.full((700, 2), number), torch.ones(2, 300)) for number in (1.0, 2.0)
    )
    assert first.eq(2).all() and second.eq(4).all()
