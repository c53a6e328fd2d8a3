import pytest
import torch

from elmo_scratch.kernels.pointwise import PARTS, Dropout


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.93])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_what_stays_is_scaled_by_its_share(probability: float, dtype: torch.dtype) -> None:
    torch.manual_seed(13)
    numbers = torch.rand(301, 333).add(1).to(dtype)
    dropped = Dropout(probability)(numbers)
    stays = dropped != 0
    share = 1 - round(probability * PARTS) / PARTS
    deviation = (share * (1 - share) / stays.numel()) ** 0.5
    assert abs(float(stays.double().mean()) - share) < 4 * deviation
    assert dropped.dtype == dtype and dropped.shape == numbers.shape
    scale = torch.tensor(1 / share).to(dtype)
    assert torch.equal(dropped[stays], numbers[stays] * scale)


@pytest.mark.parametrize("part", range(4))
def test_each_number_of_a_draw_is_drawn_on_its_own(part: int) -> None:
    torch.manual_seed(13)
    stays = Dropout(0.5)(torch.ones(100_000)).view(-1, 4) != 0
    for other in range(4):
        agreeing = float((stays[:, part] == stays[:, other]).double().mean())
        assert agreeing == 1 if other == part else abs(agreeing - 0.5) < 0.02


@pytest.mark.parametrize("size", [0, 1, 5, 8])
def test_any_number_of_numbers(size: int) -> None:
    assert Dropout(0.5)(torch.ones(size, 1)).shape == (size, 1)


def test_the_generator_alone_decides() -> None:
    numbers = torch.randn(70, 1000)
    made = []
    for threads in (1, 2):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        torch.manual_seed(13)
        made.append(Dropout(0.3)(numbers))
        torch.set_num_threads(before)
    assert torch.equal(*made)
    assert not torch.equal(made[0], Dropout(0.3)(numbers))


def test_gradients_pass_where_numbers_stay() -> None:
    numbers = torch.randn(40, 50, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(13)
    dropped = Dropout(0.25)(numbers)
    (gradient,) = torch.autograd.grad(dropped.sum(), numbers)
    assert torch.allclose(gradient, (dropped != 0).double() / 0.75)


def test_in_place() -> None:
    numbers = torch.ones(40)
    assert Dropout(0.5, inplace=True)(numbers) is numbers
    assert set(numbers.tolist()) == {0, 2}


@pytest.mark.parametrize("probability, expected", [(0.0, 1), (1e-9, 1), (1.0, 0)])
def test_none_or_all(probability: float, expected: int) -> None:
    assert Dropout(probability)(torch.ones(40)).eq(expected).all()


def test_only_training_drops() -> None:
    numbers = torch.randn(40)
    assert torch.equal(Dropout(0.5).eval()(numbers), numbers)


def test_a_probability_is_expected() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Dropout(1.5)
