from typing import Callable, Tuple

import pytest
import torch

from elmo_scratch.kernels.memory import SAMPLE_SIZE, Fingerprint

MANY = 50 * SAMPLE_SIZE + 3


def write_one(weight: torch.Tensor) -> None:
    weight[1] = 5.0


def write_one_in_inference_mode(weight: torch.Tensor) -> None:
    with torch.inference_mode():
        weight[1] = 5.0


def write_all_through_data(weight: torch.Tensor) -> None:
    weight.data.add_(1.0)


def put_other_data(weight: torch.Tensor) -> None:
    weight.data = weight.data.clone()


@pytest.mark.parametrize(
    "write",
    [write_one, write_one_in_inference_mode, write_all_through_data, put_other_data],
    ids=lambda write: write.__name__,
)
@pytest.mark.parametrize("size", [2, SAMPLE_SIZE, MANY])
def test_a_fingerprint_notices_what_is_written(
    write: Callable[[torch.Tensor], None], size: int
) -> None:
    others, weight = torch.randn(7), torch.zeros(size)
    fingerprint = Fingerprint([others, weight])
    assert fingerprint.matches([others, weight])
    write(weight)
    assert not fingerprint.matches([others, weight])
    assert Fingerprint([others, weight]).matches([others, weight])


@pytest.mark.parametrize("shape", [(16384, 512), (2048, 2048), (4096, 128), (512, 4096)])
def test_a_fingerprint_looks_at_many_columns_of_the_released_sizes(shape: Tuple[int, int]) -> None:
    weight = torch.zeros(shape)
    fingerprint = Fingerprint([weight])
    weight.data[:, 1:] = 5.0  # all but the first
    assert not fingerprint.matches([weight])


def test_tensors_of_inference_mode_are_never_trusted() -> None:
    with torch.inference_mode():
        weight = torch.zeros(MANY)
    assert not Fingerprint([weight]).matches([weight])


def test_a_fingerprint_tells_other_tensors_apart() -> None:
    one, other = torch.zeros(MANY), torch.zeros(MANY)
    fingerprint = Fingerprint([one, other])
    assert fingerprint.matches([one, other])
    assert not fingerprint.matches([other, one])
    assert not fingerprint.matches([one])


def test_tensors_without_numbers_have_a_fingerprint_too() -> None:
    empty = torch.zeros(0, 3)
    assert Fingerprint([empty]).matches([empty])


def test_tensors_of_many_kinds_are_compared_each_with_itself() -> None:
    tensors = [torch.zeros(3), torch.zeros(2, dtype=torch.float64), torch.zeros(4)]
    fingerprint = Fingerprint(tensors)
    assert fingerprint.matches(tensors)
    for tensor in tensors:
        tensor.data[-1] = 1.0
        assert not fingerprint.matches(tensors)
        tensor.data[-1] = 0.0
        assert fingerprint.matches(tensors)


def test_weights_of_one_kind_are_compared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = [torch.zeros(3), torch.zeros(2, 5), torch.zeros(MANY)]
    fingerprint, equal, times = Fingerprint(tensors), torch.equal, []

    def counted(one: torch.Tensor, other: torch.Tensor) -> bool:
        times.append(len(one))
        return equal(one, other)

    monkeypatch.setattr(torch, "equal", counted)
    assert fingerprint.matches(tensors)
    assert len(times) == 1
