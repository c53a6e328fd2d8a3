"""Reads the words of sentences in CoNLL-U, the format of Universal Dependencies."""

from typing import Iterable, Iterator, List, NamedTuple

from allennlp.common.checks import ConfigurationError

NUM_COLUMNS = 10
"""A word in CoNLL-U has its number, form, lemma, UPOS, XPOS, features, head, relation, and two
more columns."""


class TreebankWord(NamedTuple):
    """A word: the number of its line, from 1, and its columns."""

    line: int
    columns: List[str]

    @property
    def form(self) -> str:
        """The word as it is written, perhaps with spaces in it."""
        return self.columns[1]


def treebank_sentences(lines: Iterable[str], name: str) -> Iterator[List[TreebankWord]]:
    """
    Yields the words of each sentence of a CoNLL-U file, given its lines.

    The words are the syntactic ones: the lines of multiword tokens, such as `1-2 don't`, those of
    empty nodes, such as `8.1`, and comments are passed over.

    # Raises

    ConfigurationError
        If the file holds no word, a line doesn't have ten columns between tabs, words are not
        numbered from 1, or one has no form; the message names the line. Errors call the file
        `name`.

    # Source

    https://universaldependencies.org/format.html
    """
    is_empty = True
    sentence: List[TreebankWord] = []
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r\n")
        if not line.strip():
            if sentence:
                yield sentence
                sentence = []
            continue
        if line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != NUM_COLUMNS:
            raise ConfigurationError(
                f"{name}, line {number}: expected the {NUM_COLUMNS} columns of CoNLL-U between "
                f"tabs, but found {len(columns)}. Columns between spaces are another format."
            )
        word = TreebankWord(number, columns)
        place = columns[0]
        if "-" in place or "." in place:
            continue
        if place != str(len(sentence) + 1):
            raise ConfigurationError(
                f"{name}, line {number}: expected word {len(sentence) + 1} of the sentence, but "
                f"found {place!r}. A blank line ends a sentence."
            )
        if word.form == "":
            raise ConfigurationError(f"{name}, line {number}: expected a word, but found none")
        sentence.append(word)
        is_empty = False
    if sentence:
        yield sentence
    if is_empty:
        raise ConfigurationError(f"{name}: expected sentences in CoNLL-U, but no line holds a word")
