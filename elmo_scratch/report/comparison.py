"""Compares experiments, each repeated with several seeds: what is better, and what may be noise."""

import json
import math
import os
import re
from enum import Enum
from statistics import mean, stdev
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from elmo_scratch.files.strict_json import printable
from elmo_scratch.report.document import shown_mean
from elmo_scratch.report.run import Measure, Run, State, is_seed

CERTAIN = 0.05
"""What is the best indeed is ruled out less often than this."""

SEED_END = re.compile(r"[\s_./-]*(?:seed)?[\s_./\d-]*$")
"""Matches the end of what the names of repetitions have in common."""


class Verdict(Enum):
    """How an experiment stands beside the best one; the value is for readers."""

    BEST = "best"
    NOISE = "within noise"
    WORSE = "worse"
    UNKNOWN = "noise is not known"


class Experiment(NamedTuple):
    """
    Trainings that differ in their seeds only.

    # Parameters

    name : `str`
        What the names of the trainings have in common.
    runs : `List[Run]`
        All of them, finished or not.
    """

    name: str
    runs: List[Run]

    def values(self, metric: str) -> List[float]:
        """
        A number of the best epoch on the validation data, of each finished training that has it;
        NaN and infinity are left out.
        """
        found = [
            run.final.of("best_validation").get(metric)
            for run in self.runs
            if run.state is State.FINISHED
        ]
        return [value for value in found if value is not None and math.isfinite(value)]

    def mean(self, metric: str) -> float:
        """Of `values`, of which there has to be one."""
        return mean(self.values(metric))

    def deviation(self, metric: str) -> Optional[float]:
        """The standard deviation of `values`; `None` with fewer than two."""
        values = self.values(metric)
        return stdev(values) if len(values) > 1 else None


class Comparison(NamedTuple):
    """
    Experiments that can be compared: they have one measure, and the same validation data.

    # Parameters

    measure : `Measure`
        What they are compared by.
    experiments : `List[Experiment]`
        Those with a finished training, the best first.
    verdicts : `List[Verdict]`
        One for each of them.
    unjudged : `List[Experiment]`
        Those without a finished training that has measured it.
    """

    measure: Measure
    experiments: List[Experiment]
    verdicts: List[Verdict]
    unjudged: List[Experiment]

    def differences(self) -> List[Dict[str, str]]:
        """For each experiment the settings in which they differ, seeds aside, as JSON."""
        settings = [_without_seeds(one.runs[0]) for one in self.experiments]
        names = sorted({name for one in settings for name in one})
        differing = [name for name in names if len({one.get(name) for one in settings}) > 1]
        return [{name: one.get(name, "–") for name in differing} for one in settings]

    def in_words(self) -> str:
        """What it comes to."""
        metric, first = self.measure.name, self.experiments[0]
        best = shown_mean(metric, first.mean(metric), first.deviation(metric))
        names = [one.name for one in self.experiments]
        return verdicts_in_words(self.measure, names, best, self.verdicts)


def compared(runs: Sequence[Run], names: Sequence[str]) -> List[Comparison]:
    """
    # Parameters

    runs : `Sequence[Run]`
        Trainings of any kind.
    names : `Sequence[str]`
        Of the trainings.

    # Returns

    `List[Comparison]`
        Of the trainings that can be compared with others, in the order of the first ones.
    """
    by_kind: Dict[Any, Dict[Tuple, List[Tuple[Run, str]]]] = {}
    for run, name in zip(runs, names):
        data = json.dumps(run.settings.get("validation_data_path"))
        experiments = by_kind.setdefault((run.measure, data), {})
        same = tuple(sorted(_without_seeds(run).items()))
        experiments.setdefault(same, []).append((run, name))
    return [
        _comparison(measure, list(experiments.values()))
        for (measure, _), experiments in by_kind.items()
        if sum(map(len, experiments.values())) > 1
    ]


def _without_seeds(run: Run) -> Dict[str, str]:
    return {
        name: json.dumps(value, sort_keys=True, ensure_ascii=False)
        for name, value in run.settings.items()
        if not is_seed(name)
    }


def _comparison(measure: Measure, groups: List[List[Tuple[Run, str]]]) -> Comparison:
    names = _experiment_names([[name for _, name in group] for group in groups])
    experiments = [
        Experiment(name, [run for run, _ in group]) for name, group in zip(names, groups)
    ]
    sign = 1 if measure.higher_is_better else -1
    judged = [one for one in experiments if one.values(measure.name)]
    judged.sort(key=lambda one: -sign * one.mean(measure.name))
    scores = [[sign * value for value in one.values(measure.name)] for one in judged]
    unjudged = [one for one in experiments if not one.values(measure.name)]
    return Comparison(measure, judged, verdicts(scores), unjudged)


def _experiment_names(groups: List[List[str]]) -> List[str]:
    """What the trainings of each experiment have in common in their names, if that tells enough."""
    common = [
        SEED_END.sub("", os.path.commonprefix(names)) if len(names) > 1 else names[0]
        for names in groups
    ]
    if all(common) and len(set(common)) == len(common):
        return common
    return [names[0] if len(names) == 1 else f"{names[0]} …" for names in groups]


def verdicts(scores: Sequence[Sequence[float]]) -> List[Verdict]:
    """
    How each of several experiments stands beside the first, which has the highest mean. `scores`
    has one number a seed, more is better.
    """
    if not any(len(numbers) > 1 for numbers in scores):
        return [Verdict.UNKNOWN] * len(scores)
    is_open = may_be_best(scores)
    return [
        Verdict.BEST if place == 0 else Verdict.NOISE if is_open[place] else Verdict.WORSE
        for place in range(len(scores))
    ]


def verdicts_in_words(
    measure: Measure, names: Sequence[str], best: str, verdicts: Sequence[Verdict]
) -> str:
    """
    A few sentences on experiments, the best first, whose mean for readers is `best`.
    """
    if len(names) == 1:
        return f"“{names[0]}” reaches {measure.name} {best}."
    better = "higher" if measure.higher_is_better else "lower"
    if Verdict.UNKNOWN in verdicts:
        return (
            f"“{names[0]}” has the best {measure.name}, {best} ({better} is better). No experiment "
            "has two seeds: how much of the differences is noise is not known."
        )
    close = [f"“{name}”" for name, verdict in zip(names, verdicts) if verdict is Verdict.NOISE]
    end = f"Within noise of it: {', '.join(close)}." if close else "All others are worse."
    return (
        f"“{names[0]}” has the best mean {measure.name}, {best} ({better} is better). {end} An "
        "experiment is called worse where its seeds rule out, at 5 % for all experiments together, "
        "that it is the best (Hsu 1984); all are taken to have the same variance. The seeds of one "
        "text say nothing of other texts."
    )


def may_be_best(scores: Sequence[Sequence[float]]) -> List[bool]:
    """
    For each way it is asked whether any other is better, all others compared with it at once, so
    that neither their number nor that the seeds also chose the best makes more of chance than it
    is. One that was tried once counts with as much noise as the rest.

    # Parameters

    scores : `Sequence[Sequence[float]]`
        Of each way, one number a seed.

    # Returns

    `List[bool]`
        Whether the seeds leave it open that no other is better. Only the highest where no way was
        tried twice: nothing tells of noise then.

    # Source

    Hsu 1984, "Constrained simultaneous confidence intervals for multiple comparisons with the
    best", by the distribution of Dunnett 1955, which takes all ways to have the same variance.
    """
    means = [mean(numbers) for numbers in scores]
    has_noise = any(len(set(numbers)) > 1 for numbers in scores)
    if len(scores) < 2 or not has_noise:
        return [score == max(means) for score in means]
    spread = sum((score - mean(numbers)) ** 2 for numbers in scores for score in numbers)
    freedom = sum(map(len, scores)) - len(scores)
    return [
        _p_value(scores, place, spread / freedom, freedom) >= CERTAIN
        for place in range(len(scores))
    ]


def _p_value(scores: Sequence[Sequence[float]], place: int, variance: float, freedom: int) -> float:
    """
    The probability that one of the others lies as far above the way at `place` as the furthest does
    if all are equal; a bound of it where that settles the question. `scipy.stats.dunnett` gives the
    same, but computes it for each of the others, which takes a minute with 20 ways.
    """
    from scipy.stats import multivariate_t, t  # slow to import

    way, others = scores[place], [*scores[:place], *scores[place + 1 :]]
    furthest = max(
        (mean(other) - mean(way)) / math.sqrt(variance * (1 / len(other) + 1 / len(way)))
        for other in others
    )
    alone = float(t.sf(furthest, freedom))
    if alone >= CERTAIN or alone * len(others) < CERTAIN:
        return alone
    # All differences share the mean of this way.
    loads = [math.sqrt(len(other) / (len(other) + len(way))) for other in others]
    correlation = [
        [1.0 if one == other else loads[one] * loads[other] for other in range(len(loads))]
        for one in range(len(loads))
    ]
    # The integral is by random points: the same ones give the same answer.
    below = multivariate_t.cdf(
        [furthest] * len(others), shape=correlation, df=freedom, random_state=0
    )
    return 1.0 - float(below)


def settings_label(differing: Dict[str, str]) -> str:
    """The settings in which an experiment differs, by the ends of their names."""
    ends = [name.rpartition(".")[2] for name in differing]
    labels = []
    for (name, value), end in zip(differing.items(), ends):
        short = end if ends.count(end) == 1 else ".".join(name.split(".")[-2:])
        # `type` alone says too little.
        short = ".".join(name.split(".")[-2:]) if end == "type" else short
        labels.append(f"{short} = {printable(value, 60)}")
    return "; ".join(labels)
