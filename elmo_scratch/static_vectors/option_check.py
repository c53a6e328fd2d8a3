"""Numbers of a command line that must lie in a range."""

from typing import Optional

from allennlp.common.checks import ConfigurationError


def check_option(option: str, value: float, least: float, most: Optional[float] = None) -> None:
    """
    # Parameters

    option : `str`
        What the command line calls it.
    value : `float`
        What it is.
    least, most : `float`
        The range, both ends included. There need not be an upper end.

    # Raises

    ConfigurationError
        If the value lies outside; not a number does as well.
    """
    if least <= value and (most is None or value <= most):
        return
    expected = f"{least} or more" if most is None else f"{least} to {most}"
    raise ConfigurationError(f"expected --{option} of {expected}, got {value}")
