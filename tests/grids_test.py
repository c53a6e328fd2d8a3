from itertools import combinations, product
from typing import Dict, Hashable, List

from tests.grids import FEW, standing_for_all


def grid(**values: int) -> List[Dict[str, Hashable]]:
    """All combinations of so many values of each parameter."""
    counts = (range(count) for count in values.values())
    return [dict(zip(values, combination)) for combination in product(*counts)]


def test_a_small_grid_stands_for_itself() -> None:
    assert standing_for_all(grid(a=2, b=3)) == list(range(6))


def test_each_value_comes_and_most_pairs_do() -> None:
    cases = grid(a=2, b=3, c=4, d=2)
    chosen = standing_for_all(cases)
    assert len(chosen) == FEW
    for name, count in {"a": 2, "b": 3, "c": 4, "d": 2}.items():
        assert {cases[place][name] for place in chosen} == set(range(count))
    pairs = {pair for place in chosen for pair in combinations(sorted(cases[place].items()), 2)}
    assert len(pairs) >= 32  # of 44


def test_many_values_of_one_parameter_all_come() -> None:
    cases = grid(a=30, b=5)
    assert {cases[place]["a"] for place in standing_for_all(cases)} == set(range(30))
    assert len(standing_for_all(cases)) == 30


def test_a_list_of_cases_is_not_thinned_out() -> None:
    assert standing_for_all(grid(a=20)) == list(range(20))
