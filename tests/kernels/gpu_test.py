import logging
import sys
from typing import List

import pytest
import torch

from elmo_scratch.kernels import agree, gpu, maxima_on_gpu, side_by_side
from elmo_scratch.kernels.gpu import fused_kernels, made_by_triton
from tests.gpu import needs_gpu

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "FUSES", "")
    gpu._imported.cache_clear()


def test_a_cpu_has_none_of_tritons_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert fused_kernels("lstm_steps", CPU) is None
    ids, vectors, weight = torch.tensor([[1, 2]]), torch.ones(3, 4), torch.ones(5, 8)
    assert maxima_on_gpu(ids, 2, vectors, [weight], [torch.ones(5)], torch.float32) is None


def test_without_triton_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setitem(sys.modules, "triton", None)
    for name in ("lstm_steps", "char_convolution"):
        monkeypatch.delitem(
            sys.modules, f"elmo_scratch.kernels.triton_kernels.{name}", raising=False
        )
        assert fused_kernels(name, CPU) is None
    assert gpu.FUSES == ""


def test_kernels_that_fail_are_not_used_again(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> int:
        raise OSError("no compiler\nand more")

    assert made_by_triton(lambda: 5) == 5
    with caplog.at_level(logging.WARNING):
        assert made_by_triton(fails) is None
    assert gpu.FUSES == "0"
    assert [record.getMessage() for record in caplog.records] == [
        "Triton's kernels are not used from now on, and PyTorch's operations take their place, "
        "more slowly: OSError: no compiler"
    ]


def test_without_memory_other_sizes_may_still_fit() -> None:
    def fails() -> int:
        raise torch.cuda.OutOfMemoryError("out of memory")

    assert made_by_triton(fails) is None
    assert gpu.FUSES == ""


@pytest.mark.parametrize(
    "found, dtype, is_same",
    [
        ([1.0, 2.0], torch.float32, True),
        ([1.0, 2.0001], torch.float32, True),
        ([1.0, 2.001], torch.float32, False),
        ([1.0, 2.001], torch.bfloat16, True),
        ([1.0, 2.2], torch.bfloat16, False),
        ([1.0, float("nan")], torch.bfloat16, False),
    ],
)
def test_they_must_agree_with_the_reference(
    found: List[float], dtype: torch.dtype, is_same: bool
) -> None:
    same = torch.zeros(3)
    assert agree([same, torch.tensor([1.0, 2.0])], [same, torch.tensor(found)], dtype) == is_same
    assert gpu.FUSES == ("" if is_same else "0")


def test_what_pytorch_rounds_may_differ_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "product_rounding", lambda: "tf32")
    assert agree([torch.tensor([1.0, 2.0])], [torch.tensor([1.0, 2.001])], torch.float32)


def test_where_the_reference_is_not_finite_everything_is_right() -> None:
    assert agree([torch.tensor([float("nan")])], [torch.tensor([1.0])], torch.float32)


def test_parts_run_one_after_the_other_on_a_cpu() -> None:
    done: List[int] = []
    with side_by_side(CPU) as part:
        for number in range(3):
            with part():
                done.append(number)
    assert done == [0, 1, 2]


@needs_gpu
@pytest.mark.parametrize("has_gradients", [False, True])
def test_parts_have_streams_of_their_own_on_a_gpu(has_gradients: bool) -> None:
    device = torch.device("cuda", 0)
    here, streams = torch.cuda.current_stream(device), []
    with torch.set_grad_enabled(has_gradients):
        numbers = torch.ones(2**20, device=device)
        for _ in range(100):
            numbers = numbers * 1.01
        sums: List[torch.Tensor] = []
        with side_by_side(device) as part:
            for factor in (1.0, 2.0):
                with part():
                    streams.append(torch.cuda.current_stream(device))
                    sums.append((numbers * factor).sum())
        assert torch.cuda.current_stream(device) == here
        assert float(sums[0] + sums[1]) == pytest.approx(3 * 2**20 * 1.01**100, rel=1e-4)
    assert len({here, *streams}) == (1 if has_gradients else 3)
