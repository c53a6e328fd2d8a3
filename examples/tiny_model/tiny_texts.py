"""The texts of the model `tiny`, one sentence a line, from WikiText-103 and UD English EWT."""

import re
from pathlib import Path
from typing import Dict, Iterable, Iterator, List

from elmo_scratch.files.atomic import atomic_write

ARTICLES = 163
"""How many articles of WikiText-103 are trained on: 0.5 % of them."""

DEV_SENTENCES = 1000
"""How many sentences of WikiText's validation text are held out; UD English EWT has 2,001."""

HEADING, TITLE = re.compile("= .* ="), re.compile("= (?!=).*(?<!=) =")
"""Lines of WikiText that are headings, and those of them that begin an article."""

ENDS, CLOSING = {".", "?", "!"}, {")", "''"}


class TinyTexts:
    """
    The three files that a training reads.

    # Parameters

    folder : `Path`
        Where they are.
    """

    def __init__(self, folder: Path) -> None:
        self.train = folder / "train.txt"
        self.held_out: Dict[str, Path] = {
            "WikiText-103": folder / "wikitext_dev.txt",
            "UD English EWT": folder / "ewt_dev.txt",
        }
        self.dev_pattern = str(folder / "*_dev.txt")

    def write(
        self, wiki_train: Path, wiki_valid: Path, ewt_train: Path, ewt_dev: Path
    ) -> List[int]:
        """
        Writes the files from those that were published. Returns how many words each has, the
        training text first.
        """
        held_out = [wiki_sentences(wiki_valid)[:DEV_SENTENCES], ewt_sentences(ewt_dev)]
        train = [*wiki_sentences(wiki_train, ARTICLES), *ewt_sentences(ewt_train)]
        self.train.parent.mkdir(parents=True, exist_ok=True)
        counts = []
        for path, sentences in zip([self.train, *self.held_out.values()], [train, *held_out]):
            with atomic_write(path) as temporary:
                temporary.write_text("".join(f"{line}\n" for line in sentences), encoding="utf-8")
            counts.append(sum(len(line.split()) for line in sentences))
        return counts


def wiki_sentences(path: Path, num_articles: int = 10**9) -> List[str]:
    """
    The sentences of the first articles of a file of WikiText, without headings. `<unk>` becomes the
    vocabulary's `<UNK>`; signs that WikiText sets apart within a word are put back, and "was n't"
    is split as UD English EWT splits it.
    """
    sentences: List[str] = []
    for line in _lines_of_articles(path, num_articles):
        text = re.sub(r" @([-,.])@ ", r"\1", line).replace("<unk>", "<UNK>")
        text = re.sub(r"\b(\w+)n 't\b", r"\1 n't", text)
        sentences += _split(text.split())
    return sentences


def ewt_sentences(path: Path) -> List[str]:
    """The sentences of a file in CoNLL-U, by its words. One with a space in it becomes two."""
    sentences: List[str] = []
    words: List[str] = []
    for line in path.read_text("utf-8").split("\n"):
        fields = line.split("\t")
        if fields[0].isdigit():
            words.append(fields[1])
        elif not line and words:
            sentences.append(" ".join(words))
            words = []
    return sentences


def _lines_of_articles(path: Path, num_articles: int) -> Iterator[str]:
    """The lines of the first articles that are neither headings nor blank."""
    for line in path.read_text("utf-8").split("\n"):
        line = line.strip()
        if TITLE.fullmatch(line):
            if num_articles == 0:
                return
            num_articles -= 1
        if line and not HEADING.fullmatch(line):
            yield line


def _split(tokens: List[str]) -> Iterator[str]:
    """
    The sentences of a paragraph: one ends at a full stop, if what follows isn't in lower case and
    no quotation is open.
    """
    sentence: List[str] = []
    rest = iter(zip(tokens, [*tokens[1:], None]))
    for token, following in rest:
        sentence.append(token)
        if token not in ENDS:
            continue
        while following in CLOSING or (following == '"' and _is_open(sentence)):
            token, following = next(rest)
            sentence.append(token)
        if following is not None and not following[0].islower() and not _is_open(sentence):
            yield " ".join(sentence)
            sentence = []
    if sentence:
        yield " ".join(sentence)


def _is_open(sentence: Iterable[str]) -> bool:
    """Whether a quotation has begun and not ended."""
    return sum(token == '"' for token in sentence) % 2 == 1
