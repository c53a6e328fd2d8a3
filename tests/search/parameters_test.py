from typing import Any

import pytest
from optuna.trial import FixedTrial

from elmo_scratch.search.sweep import Choice, Number, WholeNumber


@pytest.mark.parametrize("value", ["trainable", 1, True, None, 0.5, [1, 2], {"type": "top"}])
def test_a_choice_may_be_whatever_json_can_write(value: Any) -> None:
    choice = Choice((value, "other"))
    drawn = choice.draw("mix", FixedTrial({"mix": choice.grid()[0]}))
    assert drawn == value and type(drawn) is type(value)


def test_one_and_true_are_two_choices() -> None:
    assert Choice((1, True)).grid() == ["1", "true"]


def test_whole_numbers_have_an_end() -> None:
    number = WholeNumber(2, 4)
    assert list(number.grid()) == [2, 3, 4]
    assert number.draw("layers", FixedTrial({"layers": 3})) == 3


def test_other_numbers_have_none() -> None:
    number = Number(0.001, 0.1, is_logarithmic=True)
    assert number.grid() is None
    assert number.draw("lr", FixedTrial({"lr": 0.03})) == 0.03


@pytest.mark.parametrize(("step", "rounded"), [(32, 64), (0.5, 77.5)])
def test_numbers_are_rounded_to_the_step(step: float, rounded: float) -> None:
    drawn = Number(10, 100, step=step).draw("size", FixedTrial({"size": 77.3}))
    assert drawn == rounded and type(drawn) is type(step)


def test_a_rounded_number_has_no_more_digits_than_its_step() -> None:
    assert Number(0.0, 1.0, step=0.1).rounded(0.29) == 0.3
