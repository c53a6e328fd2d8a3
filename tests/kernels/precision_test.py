from typing import Tuple

import pytest
import torch

from elmo_scratch.kernels import precision
from elmo_scratch.kernels.linear import Linear
from elmo_scratch.kernels.precision import MixedPrecision, precision_of, without_autocast


def test_products_run_in_the_type_of_the_weights_unless_told() -> None:
    affine = Linear(3, 5)
    assert affine.matmul_dtype_for(affine.weight) == torch.float32
    assert affine.matmul_dtype_for(affine.double().weight) == torch.float64


def test_a_precision_reaches_every_part_and_can_be_taken_back() -> None:
    inner = torch.nn.Sequential(Linear(3, 5))
    module = torch.nn.ModuleDict({"first": Linear(3, 5), "second": inner, "other": torch.nn.ReLU()})
    affines = [module["first"], inner[0]]
    assert not MixedPrecision.is_asked_for(module)
    MixedPrecision.set_everywhere(module, "bfloat16")
    assert MixedPrecision.is_asked_for(module)
    assert [affine.matmul_dtype_for(affine.weight) for affine in affines] == [torch.bfloat16] * 2
    MixedPrecision.set_everywhere(module, "float32")
    assert [affine.matmul_dtype_for(affine.weight) for affine in affines] == [torch.float32] * 2


def test_weights_keep_their_type() -> None:
    affine = Linear(3, 5)
    MixedPrecision.set_everywhere(affine, "bfloat16")
    affine(torch.ones(2, 3))
    assert {parameter.dtype for parameter in affine.parameters()} == {torch.float32}


def test_a_block_can_be_without_autocast() -> None:
    matrix = torch.ones(2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        with without_autocast(matrix.device):
            assert (matrix @ matrix).dtype == torch.float32
        assert (matrix @ matrix).dtype == torch.bfloat16
    with without_autocast(torch.device("meta")):
        pass  # a device that knows no autocast


def test_a_precision_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="`matmul_dtype` among float32, bfloat16, but got 'half'"):
        MixedPrecision.set_everywhere(Linear(3, 5), "half")


@pytest.mark.parametrize(
    "capability, used", [((7, 5), "float32"), ((8, 0), "bfloat16"), ((9, 0), "bfloat16")]
)
def test_a_gpu_without_bfloat16_is_not_asked_for_it(
    capability: Tuple[int, int],
    used: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "T4")
    precision._has_bfloat16.cache_clear()
    assert MixedPrecision.used("bfloat16", torch.device("cuda:0")) == used
    assert MixedPrecision.used("float32", torch.device("cuda:0")) == "float32"
    precision._has_bfloat16.cache_clear()
    assert caplog.text.count("The GPU T4 has no instructions") == int(used == "float32")


def test_vectors_are_rounded_as_autocast_asks() -> None:
    weights = [torch.zeros(2)]
    assert precision_of(weights) == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert precision_of(weights) == torch.bfloat16
        with without_autocast(weights[0].device):
            assert precision_of(weights) == torch.float32
    assert precision_of([torch.zeros(2).double()]) == torch.float64
