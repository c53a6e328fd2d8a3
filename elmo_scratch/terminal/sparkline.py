"""A curve in one line of text."""

import math
from typing import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
NO_NUMBER = "×"


def sparkline(values: Sequence[float], *, width: int = 32, is_logarithmic: bool = False) -> str:
    """
    # Parameters

    values : `Sequence[float]`
        The points of the curve.
    width : `int`, optional (default = `32`)
        The most characters. Of more values the last of each stretch is shown.
    is_logarithmic : `bool`, optional (default = `False`)
        Heights are those of the logarithms: for perplexities, which fall by factors.

    # Returns

    `str`
        One character a value, the lowest value `▁` and the highest `█`; `×` where there is no
        finite value, or no logarithm.
    """
    if len(values) > width:
        values = [values[(place + 1) * len(values) // width - 1] for place in range(width)]
    heights = [_height(value, is_logarithmic) for value in values]
    known = [height for height in heights if math.isfinite(height)]
    if not known:
        return NO_NUMBER * len(heights)
    low, high = min(known), max(known)
    top = len(BLOCKS) - 1
    return "".join(
        BLOCKS[round((height - low) / (high - low) * top) if high > low else 0]
        if math.isfinite(height)
        else NO_NUMBER
        for height in heights
    )


def _height(value: float, is_logarithmic: bool) -> float:
    """NaN where there is none."""
    if not is_logarithmic:
        return float(value)
    return math.log(value) if value > 0.0 else math.nan
