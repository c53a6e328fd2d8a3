"""Which of several ways may be the best, by the seeds that each was tried with."""

from statistics import mean
from typing import List, Sequence

from scipy.stats import dunnett

CERTAIN = 0.05
"""What is the best indeed is ruled out less often than this."""


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
    open_ones = []
    for place, numbers in enumerate(scores):
        others = [*scores[:place], *scores[place + 1 :]]
        # The integral is by random points: the same ones give the same answer.
        compared = dunnett(*others, control=numbers, alternative="greater", random_state=0)
        open_ones.append(bool(min(compared.pvalue) >= CERTAIN))
    return open_ones
