"""Counts the contents of a corpus and logs the figures."""

import json
import logging
from pathlib import Path
from typing import NamedTuple, Optional, Sequence

ARCHIVED_AUDIT = ".elmo_scratch-audit.json"
"""
The file beside a vocabulary that AllenNLP packs into the archive of the training, and takes for no
namespace: the figures of the corpus that the words were counted in.
"""


class CorpusAudit(NamedTuple):
    """
    The figures of a prepared corpus.

    # Parameters

    tokens : `int`
        Words of the text, repetitions included.
    sentences : `int`
        Lines that hold a token.
    distinct_words : `int`
        Words of the text, each counted once.
    cut_share : `float`
        The share of the tokens that are too long for the 50 characters of the released models.
    duplicate_lines : `int`
        Sentences whose line equals an earlier one.
    blank_lines : `int`
        Lines without a token, which were skipped.
    bytes_read : `int`
        The size of the shards on the disk.
    unknown_share : `float`, optional (default = `None`)
        The share of the tokens whose words the vocabulary lacks. `None` if there is none yet.
    empty_shards : `Sequence[str]`, optional (default = `()`)
        The names of the shards without a token. They are not written to the file, because equal
        texts with other names share one prepared folder.
    """

    tokens: int
    sentences: int
    distinct_words: int
    cut_share: float
    duplicate_lines: int
    blank_lines: int
    bytes_read: int
    unknown_share: Optional[float] = None
    empty_shards: Sequence[str] = ()

    def describe(self) -> str:
        """The figures in one line, for a log."""
        parts = [
            f"{self.tokens:,} tokens in {self.sentences:,} sentences",
            f"{self.distinct_words:,} distinct words",
            f"{self.cut_share:.4%} of the tokens cut at 50 characters",
            f"{self.duplicate_lines:,} duplicate lines",
            f"{self.blank_lines:,} blank lines",
            f"{self.bytes_read:,} bytes read",
        ]
        if self.unknown_share is not None:
            parts.append(f"{self.unknown_share:.4%} of the tokens out of vocabulary")
        if self.empty_shards:
            parts.append(f"empty: {', '.join(self.empty_shards)}")
        return "; ".join(parts)

    def write(self, path: Path) -> None:
        """Writes the figures as JSON, without names."""
        figures = self._asdict()
        del figures["empty_shards"]
        path.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")

    @classmethod
    def read(cls, path: Path) -> "CorpusAudit":
        """Reads the figures that `write` wrote."""
        return cls(**json.loads(path.read_text("utf-8")))


logger = logging.getLogger(__name__)

MUCH = 0.2
"""With a larger share of unknown tokens the vocabulary probably belongs to another text."""


def log_audit(audit: CorpusAudit, name: str) -> None:
    """
    Logs the audit of the text `name`, and warns if many tokens are unknown: on a text of unknown
    words a language model soon reaches a good perplexity without learning anything.
    """
    logger.info("%s: %s", name, audit.describe())
    if audit.unknown_share is not None and audit.unknown_share > MUCH:
        logger.warning(
            "%.0f%% of the tokens of %s are not in the vocabulary. Were its words counted in "
            "another text, split by another tokenizer, or in lower case?",
            100 * audit.unknown_share,
            name,
        )
