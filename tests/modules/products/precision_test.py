import pytest
import torch

from elmo_scratch.modules.products import Affine, MixedPrecision


def test_it_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        MixedPrecision()  # type: ignore[abstract]


def test_products_run_in_the_type_of_the_weights_unless_told() -> None:
    affine = Affine(3, 5)
    assert affine.matmul_dtype_for(affine.weight) == torch.float32
    assert affine.matmul_dtype_for(affine.double().weight) == torch.float64


def test_a_precision_reaches_every_part_and_can_be_taken_back() -> None:
    inner = torch.nn.Sequential(Affine(3, 5))
    module = torch.nn.ModuleDict({"first": Affine(3, 5), "second": inner, "other": torch.nn.ReLU()})
    affines = [module["first"], inner[0]]
    assert not MixedPrecision.is_asked_for(module)
    MixedPrecision.set_everywhere(module, "bfloat16")
    assert MixedPrecision.is_asked_for(module)
    assert [affine.matmul_dtype_for(affine.weight) for affine in affines] == [torch.bfloat16] * 2
    MixedPrecision.set_everywhere(module, "float32")
    assert [affine.matmul_dtype_for(affine.weight) for affine in affines] == [torch.float32] * 2


def test_weights_keep_their_type() -> None:
    affine = Affine(3, 5)
    MixedPrecision.set_everywhere(affine, "bfloat16")
    affine(torch.ones(2, 3))
    assert {parameter.dtype for parameter in affine.parameters()} == {torch.float32}


def test_a_precision_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="`matmul_dtype` among float32, bfloat16, but got 'half'"):
        MixedPrecision.set_everywhere(Affine(3, 5), "half")
