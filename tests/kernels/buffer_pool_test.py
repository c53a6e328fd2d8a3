import gc
import threading
from typing import Any

import pytest
import torch

from elmo_scratch.kernels import memory as recycled_memory
from elmo_scratch.kernels.memory import ALIGNMENT, SMALLEST, BufferPool

ROWS = SMALLEST // 4 // 64
"""With 64 floats in each they are just large enough."""


def test_memory_that_nobody_uses_any_more_is_used_again() -> None:
    memory = BufferPool()
    first = memory.empty((ROWS, 64), torch.float32)
    place = first.data_ptr()
    del first
    assert memory.empty((ROWS, 64), torch.float32).data_ptr() == place


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_it_has_the_shape_and_type_that_were_asked_for(dtype: torch.dtype) -> None:
    tensor = BufferPool().empty((ROWS, 4, 64), dtype)
    assert tensor.shape == (ROWS, 4, 64) and tensor.dtype == dtype
    assert tensor.is_contiguous() and tensor.data_ptr() % ALIGNMENT == 0
    assert tensor.fill_(2.0).sum() == 2.0 * tensor.numel()


def test_what_is_in_use_is_never_given_away() -> None:
    memory = BufferPool()
    tensors = [memory.empty((ROWS, 64), torch.float32).fill_(number) for number in range(5)]
    part = tensors.pop(2)[3:5]  # which still needs the whole
    others = [memory.empty((ROWS, 64), torch.float32).fill_(-1.0) for _ in range(5)]
    assert part.eq(2).all()
    assert [tensor.unique().tolist() for tensor in tensors] == [[0], [1], [3], [4]]
    assert len({tensor.data_ptr() for tensor in (*tensors, *others)}) == 9


def test_what_autograd_keeps_is_in_use() -> None:
    memory = BufferPool()
    tensor = memory.empty((ROWS, 64), torch.float32).fill_(3.0).requires_grad_()
    loss = tensor.square().sum()
    place = tensor.data_ptr()
    gradient = torch.autograd.grad(loss, [tensor], retain_graph=True)[0]
    del tensor
    gc.collect()
    assert memory.empty((ROWS, 64), torch.float32).data_ptr() != place
    assert gradient.eq(6).all()


@pytest.mark.parametrize(
    "rows, is_taken", [(ROWS, True), (ROWS * 9 // 10, True), (ROWS // 2, False)]
)
def test_a_block_that_is_much_too_large_stays_free(
    rows: int, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recycled_memory, "SMALLEST", 1)
    memory = BufferPool()
    first = memory.empty((ROWS, 64), torch.float32)
    place = first.data_ptr()
    del first
    assert (memory.empty((rows, 64), torch.float32).data_ptr() == place) == is_taken


def test_little_memory_is_pytorchs_own() -> None:
    memory = BufferPool()
    # Memory that PyTorch has not made can't grow.
    assert memory.empty((ROWS - 1, 64), torch.float32).untyped_storage().resizable()
    assert not memory.empty((ROWS, 64), torch.float32).untyped_storage().resizable()
    assert memory.empty((0, 64), torch.float32).shape == (0, 64)


def test_no_more_than_so_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recycled_memory, "MOST_FREE", 3 * (SMALLEST + ALIGNMENT))
    memory = BufferPool()
    tensors = [memory.empty((ROWS, 64), torch.float32) for _ in range(5)]
    places = [tensor.data_ptr() for tensor in tensors]
    while tensors:
        tensors.pop(0)
    assert len(memory._free) == 3
    again = [memory.empty((ROWS, 64), torch.float32) for _ in range(3)]
    # The block that was used last comes first.
    assert [tensor.data_ptr() for tensor in again] == places[:1:-1]


def test_threads_never_share_memory() -> None:
    memory, wrong = BufferPool(), []

    def work(number: int) -> None:
        for _ in range(200):
            tensor = memory.empty((ROWS, 64), torch.float32).fill_(number)
            if not tensor.eq(number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("size", [2**8, 2**18])
def test_a_result_may_be_written_over_whatever_its_size(size: int) -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, numbers: torch.Tensor) -> torch.Tensor:
            return torch.mul(numbers, 2, out=BufferPool().empty(numbers.shape, numbers.dtype))

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return 2 * gradient

    numbers = torch.ones(size, requires_grad=True)
    Doubled.apply(numbers).relu_().sum().backward()
    assert numbers.grad is not None and (numbers.grad == 2).all()
