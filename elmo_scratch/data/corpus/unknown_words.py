"""Warns where a vocabulary lacks much of a text."""

import logging

logger = logging.getLogger(__name__)

MUCH = 0.2
"""From this share of unknown tokens on the vocabulary is likely that of another text."""


def warn_of_unknown(share: float, name: str) -> None:
    """
    On a text of unknown words a language model soon has a good perplexity, and has learned nothing.

    # Parameters

    share : `float`
        Of the tokens that are unknown, in `[0, 1]`.
    name : `str`
        What the text is called.
    """
    if share > MUCH:
        logger.warning(
            "%.0f%% of the tokens of %s are not in the vocabulary. Were its words counted in "
            "another text, split by another tokenizer, or in lower case?",
            100 * share,
            name,
        )
