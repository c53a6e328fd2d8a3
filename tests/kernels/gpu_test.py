import logging
import sys
from types import SimpleNamespace
from typing import Iterator, List, Optional

import pytest
import torch

from elmo_scratch.kernels import gpu, maxima_on_gpu, side_by_side
from elmo_scratch.kernels.gpu import agree, fused_kernels, made_by_triton
from tests.gpu import needs_gpu

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(gpu, "FUSES", "")
    monkeypatch.setattr(gpu, "STOPPED", {})
    imported = gpu._imported
    imported.cache_clear()
    yield
    imported.cache_clear()


def test_a_cpu_has_none_of_tritons_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert fused_kernels("lstm_steps", CPU) is None
    ids, vectors, weight = torch.tensor([[1, 2]]), torch.ones(3, 4), torch.ones(5, 8)
    assert maxima_on_gpu(ids, 2, vectors, [weight], [torch.ones(5)], torch.float32) is None


def test_without_triton_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setitem(sys.modules, "triton", None)
    for name in gpu.KERNELS:
        monkeypatch.delitem(
            sys.modules, f"elmo_scratch.kernels.triton_kernels.{name}", raising=False
        )
        assert fused_kernels(name, CPU) is None
    assert gpu.STOPPED == {}


def test_a_triton_that_is_broken_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(name: str) -> None:
        raise RuntimeError("no driver")

    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(gpu, "import_module", broken)
    assert fused_kernels("lstm_steps", CPU) is None
    assert gpu.STOPPED == {"lstm_steps": "RuntimeError: no driver"} and len(caplog.records) == 1


def test_kernels_that_fail_are_not_used_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> int:
        raise OSError("no compiler\nand more")

    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(gpu, "_imported", lambda name: SimpleNamespace(name=name))
    assert made_by_triton("lstm_steps", lambda: 5) == 5
    assert fused_kernels("lstm_steps", CPU) is not None
    with caplog.at_level(logging.WARNING):
        assert made_by_triton("lstm_steps", fails) is None
    assert [record.getMessage() for record in caplog.records] == [
        "Triton's kernels for the steps of LSTMs are not used from now on, and PyTorch's "
        "operations take their place, more slowly: OSError: no compiler"
    ]
    assert fused_kernels("lstm_steps", CPU) is None
    assert fused_kernels("char_convolution", CPU) is not None


def test_some_errors_are_passed_on() -> None:
    def fails() -> int:
        raise ValueError("not to be trusted")

    with pytest.raises(ValueError, match="not to be trusted"):
        made_by_triton("lstm_steps", fails, ValueError)
    assert gpu.STOPPED == {}


def test_without_memory_other_sizes_may_still_fit() -> None:
    def fails() -> int:
        raise torch.cuda.OutOfMemoryError("out of memory")

    assert made_by_triton("lstm_steps", fails) is None
    assert gpu.STOPPED == {}


@pytest.mark.parametrize(
    "found, exact, is_same",
    [
        ([1.0, 2.0], None, True),
        ([1.0, 2.0001], None, True),
        ([1.0, 2.001], None, False),
        ([1.0, float("nan")], None, False),
        # The reference, of 1 and 2, is a hundredth away from what is exact.
        ([1.0, 2.0599], [1.0, 2.01], True),
        ([1.0, 2.0611], [1.0, 2.01], False),
    ],
)
def test_they_must_agree_with_the_reference(
    found: List[float], exact: Optional[List[float]], is_same: bool
) -> None:
    same = torch.zeros(3)
    best = None if exact is None else [same, torch.tensor(exact)]
    reference = [same, torch.tensor([1.0, 2.0])]
    assert agree("lstm_steps", reference, [same, torch.tensor(found)], best) == is_same
    assert list(gpu.STOPPED) == ([] if is_same else ["lstm_steps"])


def test_what_pytorch_rounds_may_differ_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "product_rounding", lambda: "tf32")
    assert agree("lstm_steps", [torch.tensor([1.0, 2.0])], [torch.tensor([1.0, 2.001])])


def test_where_the_reference_is_not_finite_everything_is_right() -> None:
    assert agree("lstm_steps", [torch.tensor([float("nan")])], [torch.tensor([1.0])])


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
