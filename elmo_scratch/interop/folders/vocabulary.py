"""
The `vocab.txt` of a model folder: the words in the order of their ids, from id 1 on, one a line.
For words without a backslash or a line break it is a vocabulary file as `bilm-tf` has them.
"""

import re
from pathlib import Path

from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import BEGIN_SENTENCE_WORD, END_SENTENCE_WORD
from elmo_scratch.interop.archives.blueprint import WordList
from elmo_scratch.interop.folders.config import ListedVocabulary

ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}
"""Characters that would end a line or be taken for an escape, and how they are written."""

ESCAPE = re.compile(r"\\[\\nr]")
PLAIN = {escape: character for character, escape in ESCAPED.items()}


def write_words(words: WordList, path: Path) -> ListedVocabulary:
    """Writes the words, and returns what the file leaves open."""
    padding, *listed = words.words
    table = str.maketrans(ESCAPED)
    path.write_bytes("".join(f"{word.translate(table)}\n" for word in listed).encode("utf-8"))
    return ListedVocabulary(len(words.words), padding, words.unknown_word)


def read_words(path: Path, vocabulary: ListedVocabulary) -> WordList:
    """
    Reads the words. Raises `ConfigurationError` if the file can't be read, is not UTF-8, has
    another number of words than `vocabulary` says, or one of them twice, or lacks a word that a
    biLM needs.
    """
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(
            f"{path}: expected the words of the biLM, but they can't be read: {reason}"
        ) from None
    if lines.pop() or len(lines) + 1 != vocabulary.num_words:
        raise ConfigurationError(
            f"{path}: expected {vocabulary.num_words - 1} lines with a word each, as config.json "
            f"says, but there are {len(lines)}. Do both files come from the same model?"
        )
    words = [vocabulary.padding_word, *(ESCAPE.sub(_plain, line) for line in lines)]
    places = {word: number for number, word in enumerate(words)}
    if len(places) < len(words):
        number, word = next(
            (number, word) for number, word in enumerate(words) if places[word] != number
        )
        raise ConfigurationError(
            f"{path}: the word {word!r} is in line {places[word]}, but it is in line {number} "
            "already: a word has one id"
        )
    needed = (vocabulary.unknown_word, BEGIN_SENTENCE_WORD, END_SENTENCE_WORD)
    missing = [word for word in needed if word not in places]
    if missing:
        raise ConfigurationError(f"{path}: the word {missing[0]!r}, which a biLM needs, is missing")
    return WordList(words, vocabulary.unknown_word)


def _plain(escape: "re.Match[str]") -> str:
    """Returns the character that an escape stands for."""
    return PLAIN[escape[0]]
