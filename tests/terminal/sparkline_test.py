import math

from elmo_scratch.terminal import sparkline


def test_heights_go_from_the_lowest_to_the_highest_value() -> None:
    assert sparkline([0.0, 1.0, 7.0]) == "▁▂█"
    assert sparkline([3.0, 3.0]) == "▁▁"


def test_a_perplexity_falls_by_factors() -> None:
    assert sparkline([10_000.0, 1_000.0, 10.0], is_logarithmic=True) == "█▆▁"
    assert sparkline([10_000.0, 1_000.0, 10.0]) == "█▂▁"


def test_what_is_no_number_is_marked() -> None:
    assert sparkline([1.0, math.nan, math.inf, 2.0]) == "▁××█"
    assert sparkline([0.0, 1.0], is_logarithmic=True) == "×▁"
    assert sparkline([]) == ""


def test_a_long_curve_is_cut_to_its_width_and_keeps_its_end() -> None:
    curve = sparkline([float(step) for step in range(100)], width=8)
    assert curve == "▁▂▃▄▅▆▇█"
