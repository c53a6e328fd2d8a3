import math
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy
import pytest
from scipy.stats import dunnett, ttest_ind

from elmo_scratch.report import Run, read_run
from elmo_scratch.report.comparison import Verdict, compared, may_be_best, settings_label
from tests.report.run_folders import write_run


def runs(
    folder: Path, accuracies: Dict[str, List[float]], config: Any = None
) -> Tuple[List[Run], List[str]]:
    """Trainings of models of these sizes, and their names: an accuracy a seed."""
    found = []
    for size, values in accuracies.items():
        for seed, accuracy in enumerate(values):
            settings = {"model": {"type": "x", "size": size}, **(config or {})}
            place = folder / f"{size}_{seed}"
            found.append(read_run(write_run(place, [accuracy], config=settings, seed=seed)))
    return found, [run.folder.name for run in found]


def test_two_ways_are_compared_as_by_student() -> None:
    random = numpy.random.default_rng(0)
    outcomes = []
    for distance in numpy.linspace(0, 2, 41):
        better, worse = random.normal(distance, 1, 5).tolist(), random.normal(0, 1, 4).tolist()
        p = ttest_ind(better, worse, alternative="greater").pvalue
        outcomes.append(bool(p >= 0.05))
        assert may_be_best([better, worse])[1] == outcomes[-1]
        assert may_be_best([worse, better])[0] == outcomes[-1]
    assert len(set(outcomes)) == 2


def test_several_ways_are_compared_as_by_dunnett() -> None:
    random = numpy.random.default_rng(1)
    outcomes = []
    for _ in range(7):
        ways = [random.normal(random.uniform(0, 3), 1, size).tolist() for size in (5, 3, 2, 1)]
        p_values = [
            min(dunnett(*others, control=way, alternative="greater", random_state=0).pvalue)
            for place, way in enumerate(ways)
            for others in [[*ways[:place], *ways[place + 1 :]]]
        ]
        outcomes += [bool(p >= 0.05) for p in p_values]
        assert may_be_best(ways) == outcomes[-4:]
    assert len(set(outcomes)) == 2


def test_the_more_ways_the_further_the_highest_gets_by_chance() -> None:
    highest, second, rest = [0.2, 0.3, 0.4], [0.1, 0.05, 0.15], [0.0, -0.1, 0.1]
    assert ttest_ind(highest, second, alternative="greater").pvalue < 0.05
    assert may_be_best([highest, second]) == [True, False]
    assert may_be_best([highest, second, *[rest] * 10])[:2] == [True, True]


def test_one_that_was_tried_once_has_as_much_noise() -> None:
    # Student's t with 3 degrees of freedom is 2.35 at 5 %; the distance here 2.5 and 2.2 times
    # the deviation of a difference, which is 0.01 * sqrt(5/3) * sqrt(1 + 1/4).
    seeds = [0.89, 0.90, 0.91, 0.92]
    assert may_be_best([seeds, [0.905 - 2.5 * 0.014434]]) == [True, False]
    assert may_be_best([seeds, [0.905 - 2.2 * 0.014434]]) == [True, True]


def test_without_noise_only_the_highest_are_best() -> None:
    assert may_be_best([[0.8], [0.9], [0.9]]) == [False, True, True]
    assert may_be_best([[0.8, 0.8], [0.9, 0.9]]) == [False, True]
    assert may_be_best([[0.8, 0.9]]) == [True]


def test_seeds_make_an_experiment(tmp_path: Path) -> None:
    (comparison,) = compared(*runs(tmp_path, {"small": [0.5, 0.7], "large": [0.8, 0.9]}))
    assert [one.name for one in comparison.experiments] == ["large", "small"]
    large, small = comparison.experiments
    assert large.mean("accuracy") == pytest.approx(0.85)
    assert large.deviation("accuracy") == pytest.approx(math.sqrt(0.005))
    assert small.values("accuracy") == [0.5, 0.7]
    # Student's t is 0.25 / sqrt((0.02 + 0.005) / 2) = 2.24, and 2.92 with 2 degrees of freedom.
    assert comparison.verdicts == [Verdict.BEST, Verdict.NOISE]
    assert comparison.differences() == [
        {"model.size": '"large"'},
        {"model.size": '"small"'},
    ]


def test_what_lies_far_apart_is_worse(tmp_path: Path) -> None:
    (comparison,) = compared(*runs(tmp_path, {"small": [0.5, 0.51], "large": [0.8, 0.81]}))
    assert comparison.verdicts == [Verdict.BEST, Verdict.WORSE]


def test_of_lower_is_better_the_lowest_comes_first(tmp_path: Path) -> None:
    trainer = {"trainer": {"validation_metric": "-accuracy"}}
    accuracies = {"small": [0.5, 0.51], "large": [0.8, 0.81]}
    (comparison,) = compared(*runs(tmp_path, accuracies, trainer))
    assert [one.name for one in comparison.experiments] == ["small", "large"]
    assert comparison.verdicts == [Verdict.BEST, Verdict.WORSE]


def test_one_seed_each_tells_nothing_of_noise(tmp_path: Path) -> None:
    (comparison,) = compared(*runs(tmp_path, {"small": [0.5], "large": [0.8]}))
    assert comparison.verdicts == [Verdict.UNKNOWN, Verdict.UNKNOWN]


def test_trainings_that_are_not_over_are_not_judged(tmp_path: Path) -> None:
    found, names = runs(tmp_path, {"small": [0.5, 0.7], "large": [0.8, 0.9]})
    (tmp_path / "large_0" / "metrics.json").unlink()
    (tmp_path / "small_0" / "metrics.json").unlink()
    (tmp_path / "small_1" / "metrics.json").unlink()
    (comparison,) = compared([read_run(run.folder) for run in found], names)
    assert [one.values("accuracy") for one in comparison.experiments] == [[0.9]]
    assert [one.name for one in comparison.unjudged] == ["small"]


def test_nan_is_no_score(tmp_path: Path) -> None:
    found, names = runs(tmp_path, {"small": [0.5, math.nan]})
    (comparison,) = compared(found, names)
    assert comparison.experiments[0].values("accuracy") == [0.5]


def test_other_data_is_not_compared(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", config={"validation_data_path": "here"})
    other = write_run(tmp_path / "other", config={"validation_data_path": "there"})
    assert compared([read_run(one), read_run(other)], ["one", "other"]) == []


def test_settings_are_named_by_their_ends() -> None:
    differing = {"model.mix.type": '"mean"', "model.lr": "1", "trainer.lr": "2", "a.size": "3"}
    assert settings_label(differing) == (
        'mix.type = "mean"; model.lr = 1; trainer.lr = 2; size = 3'
    )
