from typing import Dict, List

import pytest
import torch

from elmo_scratch.kernels import precision
from elmo_scratch.kernels.linear import Linear
from elmo_scratch.kernels.precision import BFLOAT16, Bfloat16Speed, MixedPrecision


def pretend(monkeypatch: pytest.MonkeyPatch, seconds: Dict[torch.dtype, List[float]]) -> None:
    """Lets trials take so long."""
    monkeypatch.setattr(precision, "_trials", lambda dtype: seconds[dtype])


def test_it_is_slow_where_its_best_trial_takes_clearly_longer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pretend(monkeypatch, {torch.float32: [2.0, 9.0], torch.bfloat16: [5.0, 6.0]})
    speed = Bfloat16Speed()
    assert speed.is_slow()
    assert speed.is_slow()
    assert caplog.text.count("multiplies in float32 2.5 times as fast as in bfloat16") == 1


@pytest.mark.parametrize("best", [1.0, 2.0, 2.3])
def test_it_is_not_where_it_is_faster_or_nearly_as_fast(
    best: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pretend(monkeypatch, {torch.float32: [2.0, 3.0], torch.bfloat16: [best, 9.0]})
    assert not Bfloat16Speed().is_slow()
    assert caplog.text == ""


def test_a_trial_takes_time() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        trials = precision._trials(dtype)
        assert len(trials) == precision.NUM_TRIALS
        assert min(trials) > 0.0


def test_a_trial_is_of_the_processor_whatever_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()

    def noted(vectors: torch.Tensor, weight: torch.Tensor) -> None:
        seen.add((vectors.device.type, weight.device.type, torch.is_autocast_enabled("cpu")))

    monkeypatch.setattr(torch.nn.functional, "linear", noted)
    with torch.device("meta"), torch.autocast("cpu", dtype=torch.bfloat16):
        precision._trials(torch.float32)
    assert seen == {("cpu", "cpu", False)}


@pytest.mark.parametrize("is_slow, used", [(True, torch.float32), (False, torch.bfloat16)])
def test_products_run_in_it_only_where_it_is_not_slow(
    is_slow: bool, used: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BFLOAT16, "known", is_slow)
    affine = Linear(3, 5)
    MixedPrecision.set_everywhere(affine, "bfloat16")
    assert affine.matmul_dtype_for(affine.weight) == used
    name = str(used).removeprefix("torch.")
    assert MixedPrecision.used("bfloat16", torch.device("cpu")) == name
    # A GPU's products are another matter.
    assert affine.matmul_dtype_for(affine.weight.to("meta")) == torch.bfloat16
    assert MixedPrecision.used("bfloat16", torch.device("meta")) == "bfloat16"


def test_products_in_float32_ask_for_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> bool:
        raise AssertionError("there is nothing to find out")

    monkeypatch.setattr(BFLOAT16, "known", None)
    monkeypatch.setattr(precision, "_measure", fail)
    affine = Linear(3, 5)
    assert affine.matmul_dtype_for(affine.weight) == torch.float32
    assert affine(torch.ones(2, 3)).shape == (2, 5)
    assert MixedPrecision.used("float32", torch.device("cpu")) == "float32"
