"""The highest of many scores."""

from typing import NamedTuple

import torch

GROUP_SIZE = 64
"""Scores of which only the highest is looked at first."""


class TopScores(NamedTuple):
    """
    The highest scores of each row, best first.

    # Parameters

    values : `torch.Tensor`
        Shape `(rows, wanted)`.
    indices : `torch.Tensor`
        Shape `(rows, wanted)`: their columns.
    """

    values: torch.Tensor
    indices: torch.Tensor


def top_scores(scores: torch.Tensor, wanted: int) -> TopScores:
    """
    What `scores.topk(wanted)` gives, in the time of one pass over the scores: the highest ones of
    all lie in the groups with the highest maxima, so that only few groups are sorted.

    # Parameters

    scores : `torch.Tensor`
        Shape `(rows, columns)`.
    wanted : `int`
        How many scores of a row.

    # Returns

    `TopScores`
        In which order equal scores come is not told.
    """
    rows, columns = scores.shape
    groups = columns // GROUP_SIZE
    if groups <= wanted:
        return TopScores(*scores.topk(wanted))
    grouped = groups * GROUP_SIZE
    maxima = scores[:, :grouped].unflatten(1, (groups, GROUP_SIZE)).amax(dim=2)  # (rows, groups)
    leading = maxima.topk(wanted, sorted=False).indices.unsqueeze(2)  # (rows, wanted, 1)
    within = torch.arange(GROUP_SIZE, device=scores.device)
    members = (leading * GROUP_SIZE + within).flatten(1)  # (rows, wanted * GROUP_SIZE)
    ungrouped = torch.arange(grouped, columns, device=scores.device).expand(rows, -1)
    candidates = torch.cat([members, ungrouped], dim=1)
    top = scores.gather(1, candidates).topk(wanted)
    return TopScores(top.values, candidates.gather(1, top.indices))
