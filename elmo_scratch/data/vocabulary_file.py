"""
Reads and writes the vocabulary files of `bilm-tf`: one word a line, in the order of their ids.
"""

from os import PathLike
from pathlib import Path
from typing import Dict, List, Sequence, Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import BEGIN_SENTENCE_WORD, END_SENTENCE_WORD
from elmo_scratch.data.lines import text_lines
from elmo_scratch.files.atomic import atomic_write

UNKNOWN_WORD = "<UNK>"
"""The word that stands for all words that are not in the file."""

MARKS = (BEGIN_SENTENCE_WORD, END_SENTENCE_WORD, UNKNOWN_WORD)
"""The words that every vocabulary file must hold."""

_SKIPPED = "!!!MAXTERMID"
"""A line that `bilm-tf` skips."""

_LINE_FEED = "@@NEWLINE@@"
"""AllenNLP writes this for a line feed, and reads it as one."""


def read_vocabulary_file(path: Union[str, PathLike]) -> List[str]:
    """
    Reads the words of a file, or of an address that AllenNLP's `cached_path` can fetch. The id of a
    word in official weights is its place here.

    # Raises

    ConfigurationError
        If the file can't be read, a line is blank or not UTF-8, a word is there twice, or one of
        `<S>`, `</S>` and `<UNK>` is missing.
    """
    lines: Dict[str, int] = {}
    for number, line in enumerate(text_lines(path), start=1):
        word = line.strip()
        if word == _SKIPPED:
            continue
        if not word:
            raise ConfigurationError(
                f"{path}, line {number}: expected a word, but the line is blank. Remove it: each "
                "line counts as a word."
            )
        if word in lines:
            raise ConfigurationError(
                f"{path}, line {number}: the word {word!r} is in line {lines[word]} already. "
                "Remove one of the lines: a word has one id."
            )
        lines[word] = number
    _check_marks(lines, path)
    return list(lines)


def write_vocabulary_file(words: Sequence[str], path: Union[str, PathLike]) -> None:
    """
    Writes a vocabulary file, whole or not at all. The words are in the order of their ids, without
    padding and with `<S>`, `</S>` and `<UNK>`.

    # Raises

    ConfigurationError
        If a mark is missing, a word is there twice, or one would not be read back as it is.
    """
    path = Path(path)
    known = set()
    for word in words:
        if not is_writable(word):
            raise ConfigurationError(
                f"{path}: the word {word!r} can't be written to a vocabulary file, which would "
                "give it back as another. Leave it out of the vocabulary."
            )
        if word in known:
            raise ConfigurationError(f"{path}: the word {word!r} is twice among those to write")
        known.add(word)
    _check_marks(known, path)
    with atomic_write(path) as part, open(part, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{word}\n" for word in words)


def is_writable(word: str) -> bool:
    """Whether AllenNLP and `bilm-tf` read a word unchanged from a line of a file."""
    return (
        word == word.strip()
        and word not in ("", _SKIPPED)
        and "\n" not in word
        and "\r" not in word
        and _LINE_FEED not in word
    )


def _check_marks(words: Union[Dict[str, int], set], path: Union[str, PathLike]) -> None:
    """Raises an error if a mark is missing."""
    missing = [mark for mark in MARKS if mark not in words]
    if missing:
        raise ConfigurationError(
            f"{path}: expected the words {', '.join(MARKS)}, but {' and '.join(missing)} is "
            "missing. A vocabulary file has one word a line, and begins with these three."
        )
