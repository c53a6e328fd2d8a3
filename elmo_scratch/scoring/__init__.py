"""
How likely a language model finds words: scores of sentences and texts.

The room promises the numbers of `allennlp evaluate`: the same softmax over all words, and the same
states. Scores of a text come in its order and in bounded memory.
"""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from elmo_scratch.scoring.scores import LikelyWord as LikelyWord
    from elmo_scratch.scoring.scores import SentenceScore as SentenceScore
    from elmo_scratch.scoring.scores import TextScore as TextScore
    from elmo_scratch.scoring.scores import json_lines as json_lines
    from elmo_scratch.scoring.scores import table_lines as table_lines
    from elmo_scratch.scoring.sentence_scorer import SentenceScorer as SentenceScorer
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "LikelyWord": "scores",
            "SentenceScore": "scores",
            "SentenceScorer": "sentence_scorer",
            "TextScore": "scores",
            "json_lines": "scores",
            "table_lines": "scores",
        },
    )

__all__ = [
    "LikelyWord",
    "SentenceScore",
    "SentenceScorer",
    "TextScore",
    "json_lines",
    "table_lines",
]
