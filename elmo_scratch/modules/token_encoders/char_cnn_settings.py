"""Settings of an encoder of characters."""

from typing import Sequence, Tuple

from elmo_scratch.alphabet import CHARACTERS_PER_TOKEN
from elmo_scratch.modules.token_encoders.character_convolution import ACTIVATIONS


def check_settings(
    filters: Sequence[Tuple[int, int]], activation: str, max_characters: int
) -> None:
    """
    # Parameters

    filters, activation, max_characters
        As `filters`, `activation` and `max_characters_per_token` of `CharCnnEncoder`.

    # Raises

    ValueError
        If they make no sense.
    """
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"expected an `activation` among {', '.join(ACTIVATIONS)}, but got {activation!r}"
        )
    if max_characters not in CHARACTERS_PER_TOKEN:
        raise ValueError(
            f"expected `max_characters_per_token` from {CHARACTERS_PER_TOKEN[0]} to "
            f"{CHARACTERS_PER_TOKEN[-1]}, but got {max_characters}"
        )
    if not filters:
        raise ValueError("expected at least one pair of a width and a number in `filters`")
    for width, number in filters:
        if not 1 <= width <= max_characters or number < 1:
            raise ValueError(
                f"expected in `filters` widths from 1 to {max_characters} and at least one filter "
                f"of each, but got {[width, number]}"
            )
