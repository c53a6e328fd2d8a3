"""Scores as lines: JSON for programs, a table for people."""

import json
import textwrap
from typing import Dict, Iterator, List

from elmo_scratch.alphabet import BEGIN_SENTENCE_WORD, END_SENTENCE_WORD
from elmo_scratch.scoring.scores import LikelyWord, SentenceScore, TextScore
from elmo_scratch.terminal import clipped, counted, printable, result_lines, text_width

COLUMNS = 80

WORD_COLUMNS, NUMBER_COLUMNS = 24, 15

UNKNOWN = "?"
"""Marks a word that the vocabulary lacks."""


def sentence_record(score: SentenceScore) -> Dict[str, object]:
    """
    Returns a sentence for JSON: the fields of `SentenceScore`, with `likely` only where words were
    found, and its perplexities.
    """
    record = {**score._asdict(), **score.perplexities()}
    if not score.likely:
        del record["likely"]
    return record


def json_lines(score: SentenceScore) -> List[str]:
    """The line of a sentence: `sentence_record` as JSON."""
    return [json.dumps(sentence_record(score), ensure_ascii=False)]


def json_total(total: TextScore) -> List[str]:
    """The line of a text: an object `text` with its counts and its perplexities."""
    counts = {
        "sentences": total.num_sentences,
        "words": total.num_words,
        "unknown": total.num_unknown,
    }
    return [json.dumps({"text": {**counts, **total.perplexities()}})]


def table_lines(score: SentenceScore) -> List[str]:
    """
    The lines of a sentence: its perplexities, then a line for each word and mark with the log
    probability in each direction, `?` before a word that the vocabulary lacks, and the likely words
    below it.
    """
    found = score.perplexities()
    lines = [
        f"sentence {score.number}  perplexity {found['perplexity']:.1f}: left to right "
        f"{found['perplexity_left_to_right']:.1f}, right to left "
        f"{found['perplexity_right_to_left']:.1f}",
        _row("", "", "left to right", "right to left"),
        _row("  ", BEGIN_SENTENCE_WORD, "", _number(score.right_to_left[0])),
    ]
    unknown = set(score.unknown)
    for place, word in enumerate(score.words):
        mark = f"{UNKNOWN} " if place in unknown else "  "
        before, after = score.left_to_right[place], score.right_to_left[place + 1]
        lines.append(_row(mark, word, _number(before), _number(after)))
        if score.likely:
            lines += _likely(score.likely[place])
    return [*lines, _row("  ", END_SENTENCE_WORD, _number(score.left_to_right[-1]), ""), ""]


def table_total(total: TextScore) -> List[str]:
    """The lines of a text: its counts and its perplexities, told as `allennlp evaluate` does."""
    share = total.num_unknown / max(1, total.num_words)
    return [
        f"{counted(total.num_sentences, 'sentence')}, {counted(total.num_words, 'word')}",
        f"{counted(total.num_unknown, 'word')} ({share:.1%}) out of vocabulary ({UNKNOWN})",
        *result_lines(total.perplexities()),
    ]


def _row(mark: str, word: str, before: str, after: str) -> str:
    shown = clipped(f"{mark}{printable(word)}", WORD_COLUMNS)
    padding = " " * (WORD_COLUMNS - text_width(shown))
    return f"{shown}{padding}{before:>{NUMBER_COLUMNS}}{after:>{NUMBER_COLUMNS}}".rstrip()


def _number(log_probability: float) -> str:
    shown = f"{log_probability:.2f}"
    return "0.00" if shown == "-0.00" else shown


def _likely(words: List[LikelyWord]) -> Iterator[str]:
    # A name and its number stay together; no comma stands between, which is a likely word itself.
    told = "  ".join(f"{printable(word)}\xa0{share:.1%}" for word, share in words)
    for line in textwrap.wrap(told, COLUMNS - 6, break_on_hyphens=False, break_long_words=False):
        yield " " * 6 + line.replace("\xa0", " ")
