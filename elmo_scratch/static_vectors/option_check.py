"""Checks that numbers of a command line lie in a range."""

from typing import Optional

from allennlp.common.checks import ConfigurationError


def check_option(option: str, value: float, least: float, most: Optional[float] = None) -> None:
    """
    Raises `ConfigurationError` if the value of an option is below `least`, above `most` or NaN.
    `option` is its name on the command line, without the dashes.
    """
    if least <= value and (most is None or value <= most):
        return
    expected = f"{least} or more" if most is None else f"{least} to {most}"
    raise ConfigurationError(f"expected --{option} of {expected}, got {value}")
