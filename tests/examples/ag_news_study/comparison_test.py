from types import ModuleType
from typing import Dict

import numpy
from scipy.stats import ttest_ind


def test_two_ways_are_compared_as_by_student(modules: Dict[str, ModuleType]) -> None:
    may_be_best = modules["comparison"].may_be_best
    random = numpy.random.default_rng(0)
    outcomes = []
    for distance in numpy.linspace(0, 2, 41):
        better, worse = random.normal(distance, 1, 5).tolist(), random.normal(0, 1, 4).tolist()
        p = ttest_ind(better, worse, alternative="greater").pvalue
        outcomes.append(bool(p >= 0.05))
        assert may_be_best([better, worse])[1] == outcomes[-1]
        assert may_be_best([worse, better])[0] == outcomes[-1]
    assert len(set(outcomes)) == 2


def test_the_more_ways_the_further_the_highest_gets_by_chance(
    modules: Dict[str, ModuleType],
) -> None:
    may_be_best = modules["comparison"].may_be_best
    highest, second, rest = [0.2, 0.3, 0.4], [0.1, 0.05, 0.15], [0.0, -0.1, 0.1]
    assert ttest_ind(highest, second, alternative="greater").pvalue < 0.05
    assert may_be_best([highest, second]) == [True, False]
    assert may_be_best([highest, second, *[rest] * 10])[:2] == [True, True]


def test_one_that_was_tried_once_has_as_much_noise(modules: Dict[str, ModuleType]) -> None:
    may_be_best = modules["comparison"].may_be_best
    # Student's t with 3 degrees of freedom is 2.35 at 5 %; the distance here 2.5 and 2.2 times
    # the deviation of a difference, which is 0.01 * sqrt(5/3) * sqrt(1 + 1/4).
    seeds = [0.89, 0.90, 0.91, 0.92]
    assert may_be_best([seeds, [0.905 - 2.5 * 0.014434]]) == [True, False]
    assert may_be_best([seeds, [0.905 - 2.2 * 0.014434]]) == [True, True]


def test_without_noise_only_the_highest_are_best(modules: Dict[str, ModuleType]) -> None:
    may_be_best = modules["comparison"].may_be_best
    assert may_be_best([[0.8], [0.9], [0.9]]) == [False, True, True]
    assert may_be_best([[0.8, 0.8], [0.9, 0.9]]) == [False, True]
    assert may_be_best([[0.8, 0.9]]) == [True]
