from typing import Iterator

import pytest
import torch

from elmo_scratch.kernels.pointwise import sigmoid_

COUNTS = [0, 1, 7, 31, 32, 33, 100, 4095, 32769, 65537, 70001, 98309, 131071]


@pytest.fixture(params=[1, 2, 3, 7])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def numbers_of(count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(13)
    return torch.randn(count, generator=generator, dtype=torch.double).to(dtype) * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_it_is_the_logistic_function_in_place(dtype: torch.dtype) -> None:
    for count in COUNTS:
        numbers = numbers_of(count, dtype)
        expected = torch.sigmoid(numbers.double())
        assert sigmoid_(numbers) is numbers
        rounding = 4 * torch.finfo(dtype).eps
        assert torch.allclose(numbers.double(), expected, rtol=0, atol=rounding), count


@pytest.mark.parametrize("rows", [5, 32])
def test_numbers_that_lie_apart_get_the_same(rows: int) -> None:
    numbers = numbers_of(rows * 64).view(rows, 64)
    apart = numbers[:, ::2]
    expected = sigmoid_(apart.contiguous())
    assert not apart.is_contiguous()
    assert torch.equal(sigmoid_(apart), expected)
    assert torch.equal(numbers[:, ::2], expected)


def test_a_numbers_result_does_not_depend_on_where_it_lies(threads: int) -> None:
    numbers = numbers_of(max(COUNTS))
    whole = sigmoid_(numbers.clone())
    for count in COUNTS:
        for first in (0, 1, max(COUNTS) - count):
            some = slice(first, first + count)
            assert torch.equal(sigmoid_(numbers[some].clone()), whole[some])


def test_nor_does_it_depend_on_how_many_threads_there_are(threads: int) -> None:
    several = [sigmoid_(numbers_of(count)) for count in COUNTS]
    torch.set_num_threads(1)
    for count, result in zip(COUNTS, several, strict=True):
        assert torch.equal(result, sigmoid_(numbers_of(count)))


def test_any_shape_will_do() -> None:
    numbers = numbers_of(3 * 5 * 7)
    assert torch.equal(sigmoid_(numbers.view(3, 5, 7).clone()).flatten(), sigmoid_(numbers))
