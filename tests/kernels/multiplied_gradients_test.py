import pytest
import torch

from elmo_scratch.kernels.weight_gradients import (
    MULTIPLY_GRADIENTS,
    can_multiply_gradients,
    multiply_gradients,
)

pytestmark = pytest.mark.skipif(
    not MULTIPLY_GRADIENTS, reason="nothing is compiled for gradients on this processor"
)


DTYPE = next(iter(MULTIPLY_GRADIENTS), torch.float32)
"""The one precision of products for which this processor has compiled code, if there is one."""


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape).to(DTYPE)


@pytest.mark.usefixtures("each_number_of_threads")
@pytest.mark.parametrize("rows", [1, 2, 31, 32, 33, 257, 700])
@pytest.mark.parametrize(
    "outputs, inputs",
    [(1, 1), (11, 5), (13, 17), (15, 33), (32, 32), (70, 45), (512, 128), (4096, 31), (300, 1600)],
)
def test_gradients_are_not_rounded(outputs: int, inputs: int, rows: int) -> None:
    torch.manual_seed(13)
    gradients, parts = random(rows, outputs), [random(rows, inputs), random(rows, inputs + 3)]
    made, sums = multiply_gradients(gradients, parts)
    for ours, part in zip(made, parts, strict=True):
        exact = gradients.double().t() @ part.double()
        assert ours.shape == exact.shape and ours.dtype == torch.float32
        assert torch.allclose(ours.double(), exact, rtol=1e-5, atol=1e-4)
    assert torch.allclose(sums.double(), gradients.double().sum(dim=0), rtol=1e-5, atol=1e-4)


def test_numbers_may_lie_scattered_in_memory() -> None:
    gradients, vectors = random(40, 50), random(40, 60)
    expected, sums = multiply_gradients(gradients, [vectors])
    turned = [part.t().contiguous().t() for part in (gradients, vectors)]
    made, own_sums = multiply_gradients(turned[0], [turned[1]])
    assert torch.equal(made[0], expected[0]) and torch.equal(own_sums, sums)


def test_they_do_not_depend_on_the_number_of_threads(one_thread: None) -> None:
    gradients, vectors = random(300, 500), random(300, 600)
    (alone,), sums = multiply_gradients(gradients, [vectors])
    torch.set_num_threads(2)
    (together,), own_sums = multiply_gradients(gradients, [vectors])
    assert torch.equal(together, alone) and torch.equal(own_sums, sums)


def test_they_do_not_depend_on_other_outputs_and_inputs() -> None:
    gradients, vectors = random(300, 500), random(300, 600)
    (whole,), sums = multiply_gradients(gradients, [vectors])
    (some,), own_sums = multiply_gradients(gradients[:, 5:12], [vectors[:, 3:60]])
    assert torch.equal(some, whole[5:12, 3:60]) and torch.equal(own_sums, sums[5:12])


def test_what_is_no_number_stays_with_its_output() -> None:
    gradients = random(40, 50)
    gradients[3, 7] = float("nan")
    made, sums = multiply_gradients(gradients, [random(40, 60)])
    assert made[0].isnan().any(dim=1).nonzero().flatten().tolist() == [7]
    assert sums.isnan().nonzero().flatten().tolist() == [7]


def test_it_knows_what_it_multiplies() -> None:
    gradients, vectors = random(4, 5), random(4, 6)
    assert can_multiply_gradients(gradients, [vectors], torch.float32)
    assert not can_multiply_gradients(gradients, [vectors], torch.float64)
    assert not can_multiply_gradients(gradients.double(), [vectors], torch.float32)
    assert not can_multiply_gradients(gradients.to("meta"), [vectors], torch.float32)
    assert not can_multiply_gradients(gradients, [vectors.to("meta")], torch.float32)
    assert not can_multiply_gradients(gradients[:0], [vectors[:0]], torch.float32)
    assert not can_multiply_gradients(gradients[:, :0], [vectors], torch.float32)
    for unfit in (vectors[:3], vectors[0], vectors.double()):
        assert not can_multiply_gradients(gradients, [vectors, unfit], torch.float32)


def test_a_default_device_changes_nothing() -> None:
    gradients, vectors = random(40, 50), random(40, 60)
    expected, sums = multiply_gradients(gradients, [vectors])
    with torch.device("meta"):
        made, own_sums = multiply_gradients(gradients, [vectors])
    assert torch.equal(made[0], expected[0]) and torch.equal(own_sums, sums)
