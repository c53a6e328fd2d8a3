"""Tells what a corpus holds, and how much of it a vocabulary lacks."""

import logging

from elmo_scratch.data.corpus.corpus_audit import CorpusAudit

logger = logging.getLogger(__name__)

MUCH = 0.2
"""From this share of unknown tokens on the vocabulary is likely that of another text."""


def log_audit(audit: CorpusAudit, name: str) -> None:
    """
    Logs the audit, and warns where much is unknown: on a text of unknown words a language model
    soon has a good perplexity, and has learned nothing.

    # Parameters

    audit : `CorpusAudit`
        Of a text for which there is a vocabulary.
    name : `str`
        What the text is called.
    """
    logger.info("%s: %s", name, audit.describe())
    if audit.unknown_share is not None and audit.unknown_share > MUCH:
        logger.warning(
            "%.0f%% of the tokens of %s are not in the vocabulary. Were its words counted in "
            "another text, split by another tokenizer, or in lower case?",
            100 * audit.unknown_share,
            name,
        )
