"""How many tokens of a text are read."""

from typing import Optional

from allennlp.common.checks import ConfigurationError


def check_max_tokens(max_tokens: Optional[int]) -> None:
    """
    # Parameters

    max_tokens : `Optional[int]`
        What a config asks for; `None` for all.

    # Raises

    ConfigurationError
        If it is below 1. A negative one would cut off the end of each text.
    """
    if max_tokens is not None and max_tokens < 1:
        raise ConfigurationError(f"expected `max_tokens` of at least 1, but got {max_tokens}")
