from itertools import combinations, product
from typing import Dict, Hashable, Iterable, List, Set, Tuple

from tests.grids import FEW, Case, standing_for_all


def grid(**values: int) -> List[Dict[str, Hashable]]:
    """All combinations of so many values of each parameter."""
    counts = (range(count) for count in values.values())
    return [dict(zip(values, combination)) for combination in product(*counts)]


def pairs_in(cases: Iterable[Case]) -> Set[Tuple[object, ...]]:
    return {pair for case in cases for pair in combinations(sorted(case.items()), 2)}


def test_a_small_grid_stands_for_itself() -> None:
    assert standing_for_all(grid(a=2, b=3)).for_values == set(range(6))


def test_each_value_comes_and_most_pairs_do() -> None:
    cases = grid(a=2, b=3, c=4, d=2)
    chosen = standing_for_all(cases).for_values
    assert len(chosen) == FEW
    for name, count in {"a": 2, "b": 3, "c": 4, "d": 2}.items():
        assert {cases[place][name] for place in chosen} == set(range(count))
    assert len(pairs_in(cases[place] for place in chosen)) >= 32  # of 44


def test_every_pair_comes_in_a_third_of_the_cases() -> None:
    cases = grid(a=2, b=3, c=4, d=2)
    for_values, for_pairs = standing_for_all(cases)
    assert for_values < for_pairs and len(for_pairs) <= 16  # of 48; three times four at least
    assert pairs_in(cases[place] for place in for_pairs) == pairs_in(cases)


def test_many_values_of_one_parameter_all_come() -> None:
    cases = grid(a=30, b=5)
    chosen = standing_for_all(cases).for_values
    assert {cases[place]["a"] for place in chosen} == set(range(30))
    assert len(chosen) == 30


def test_of_two_parameters_every_case_is_a_pair() -> None:
    assert standing_for_all(grid(a=5, b=7)).for_pairs == set(range(35))


def test_a_list_of_cases_is_not_thinned_out() -> None:
    assert standing_for_all(grid(a=20)).for_values == set(range(20))
