"""
The forms in which files hold sentences: a text of one a line, JSON lines, and CoNLL-U, the format
of Universal Dependencies. Their sentences are cut into tokens, or spaCy's rules cut those of a
text.
"""

import json
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional

from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.lines import ending_of, line_tokens, told_of_rows

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


SPACE_WITHIN = "\u2581"
"""Stands for white space within a token where tokens are written with spaces between them."""


class CutSentence(NamedTuple):
    """
    A sentence: the number of the line where it begins, from 1, the sentence as one line, and its
    tokens, none where the line is blank.
    """

    place: int
    line: str
    tokens: List[str]


def spaced_line(tokens: Iterable[str]) -> str:
    """
    The tokens with single spaces between them; white space within a token becomes `SPACE_WITHIN`,
    so that `str.split` finds as many tokens.
    """
    return " ".join(map(_without_space, tokens))


def _without_space(token: str) -> str:
    if token.split() == [token]:
        return token
    return "".join(SPACE_WITHIN if letter.isspace() else letter for letter in token)


def text_sentences(lines: Iterable[str], name: str) -> Iterator[CutSentence]:
    """A sentence a line, its tokens between white space."""
    for place, line in enumerate(told_of_rows(lines, name), start=1):
        yield CutSentence(place, line.strip(), line.split())


def conllu_sentences(lines: Iterable[str], name: str) -> Iterator[CutSentence]:
    """The forms of a treebank in CoNLL-U; raises as `treebank_sentences`."""
    for words in treebank_sentences(lines, name):
        tokens = [word.form for word in words]
        yield CutSentence(words[0].line, spaced_line(tokens), tokens)


def json_sentences(lines: Iterable[str], name: str) -> Iterator[CutSentence]:
    """
    A JSON object a line, of which `tokens` lists the tokens; other keys are passed over. Raises
    `ConfigurationError` if a line is something else; the message names it.
    """
    for place, line in enumerate(lines, start=1):
        tokens: Any = []
        if line.strip():
            try:
                record: Any = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise _no_tokens(name, place, line, f": {error}") from None
            tokens = record.get("tokens") if isinstance(record, dict) else None
            if not isinstance(tokens, list) or not tokens:
                raise _no_tokens(name, place, line)
            if not all(isinstance(token, str) and token for token in tokens):
                raise _no_tokens(name, place, line)
        yield CutSentence(place, spaced_line(tokens), tokens)


SHOWN = 80
"""Characters of a line in an error."""


def _no_tokens(name: str, place: int, line: str, reason: str = "") -> ConfigurationError:
    return ConfigurationError(
        f"{name}, line {place}: expected the tokens of a sentence, none of them empty, as JSON, "
        f'{{"tokens": ["New York", "sleeps"]}}, but got {line.strip()[:SHOWN]!r}{reason}'
    )


SENTENCE_FORMS: Dict[str, Callable[[Iterable[str], str], Iterator[CutSentence]]] = {
    "text": text_sentences,
    "conllu": conllu_sentences,
    "jsonl": json_sentences,
}
"""The reader of each form: from the lines of a file, and its name in errors, to its sentences."""


def cut_sentences(
    lines: Iterable[str], name: str, form: str, language: Optional[str] = None
) -> Iterator[CutSentence]:
    """
    Yields the sentences of a file.

    # Parameters

    lines : `Iterable[str]`
        The lines of the file.
    name : `str`
        Its name in errors.
    form : `str`
        Its form in `SENTENCE_FORMS`.
    language : `str`, optional (default = tokens stand between white space)
        The language by whose rules spaCy cuts the sentences of a text, such as `"hi"`.

    # Raises

    ConfigurationError
        If spaCy doesn't know the language, the form has tokens, or a line is of another form.
    """
    if language is None:
        yield from SENTENCE_FORMS[form](lines, name)
        return
    if form != "text":
        raise ConfigurationError(
            f"{name}: its sentences are cut into tokens already. Leave --tokenize out"
        )
    # spaCy takes a second to import, which only texts to cut need.
    from elmo_scratch.data.spacy_blank_tokenizer import SpacyBlankTokenizer

    tokenizer = SpacyBlankTokenizer(language)
    for place, line in enumerate(told_of_rows(lines, name), start=1):
        tokens = [token.ensure_text() for token in line_tokens(tokenizer, line)]
        yield CutSentence(place, spaced_line(tokens), tokens)


def form_by_name(name: str) -> str:
    """The form in `SENTENCE_FORMS` that the ending of a file's name tells: `text` if it is none."""
    ending = ending_of(name).removeprefix(".")
    return ending if ending in SENTENCE_FORMS else "text"
