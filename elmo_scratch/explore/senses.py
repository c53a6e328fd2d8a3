"""A text that comes with the package: words in two senses each, written for it."""

from pathlib import Path
from typing import List, NamedTuple

SENSES_FILE = Path(__file__).parent / "senses.tsv"
"""A line has a word, the name of its sense, and a sentence that holds the word once."""


class SenseSentence(NamedTuple):
    """A word, the name of its sense, and the words of a sentence that holds it once."""

    word: str
    sense: str
    sentence: List[str]

    @property
    def position(self) -> int:
        """The word's place in the sentence, from 0."""
        return self.sentence.index(self.word)


def read_senses() -> List[SenseSentence]:
    """
    Returns 96 sentences: six words (bank, court, match, party, plant, spring) in two senses each,
    eight sentences a sense. No model of this package was trained on them.
    """
    rows = (line.split("\t") for line in SENSES_FILE.read_text("utf-8").splitlines())
    return [SenseSentence(word, sense, sentence.split()) for word, sense, sentence in rows]
