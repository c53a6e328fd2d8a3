from collections import Counter
from pathlib import Path
from typing import List, Optional, Tuple

import numpy
import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data.tokenizers import LettersDigitsTokenizer, Token, Tokenizer

from elmo_scratch.data.corpus import CorpusAudit, WordTable, preparation
from elmo_scratch.data.corpus import shards as shard_blocks
from elmo_scratch.data.corpus.preparation import (
    AUDIT,
    SENTENCE_STARTS,
    SHARD_STARTS,
    START_TYPE,
    TOKEN_TYPE,
    TOKENS,
    prepare_corpus,
)
from tests import FIXTURES_ROOT

TEXTS = [FIXTURES_ROOT / "text" / name for name in ("heldout.txt", "sentences.txt", "tour.txt")]


class EmptyTokens(Tokenizer):
    """Gives a token without text after each word."""

    def tokenize(self, text: str) -> List[Token]:
        assert text == text.strip() != ""
        return [Token(part) for word in text.split() for part in (word, "")]


def prepared(
    folder: Path,
    *texts: str,
    tokenizer: Optional[Tokenizer] = None,
    max_tokens: Optional[int] = None,
) -> Tuple[List[List[List[str]]], CorpusAudit]:
    """The words of each sentence of each shard, read back, and the audit."""
    shards = []
    for number, text in enumerate(texts):
        shards.append(folder / f"shard-{number}.txt")
        shards[-1].write_bytes(text.encode("utf-8"))
    return read_back(shards, folder / "prepared", tokenizer, max_tokens)


def read_back(
    shards: List[Path],
    folder: Path,
    tokenizer: Optional[Tokenizer] = None,
    max_tokens: Optional[int] = None,
) -> Tuple[List[List[List[str]]], CorpusAudit]:
    folder.mkdir()
    prepare_corpus(shards, tokenizer, max_tokens, folder)
    words = list(WordTable(folder))
    tokens = [words[number] for number in numpy.fromfile(folder / TOKENS, TOKEN_TYPE)]
    starts = numpy.fromfile(folder / SENTENCE_STARTS, START_TYPE)
    sentences = [tokens[start:end] for start, end in zip(starts, starts[1:])]
    shard_starts = numpy.fromfile(folder / SHARD_STARTS, START_TYPE)
    assert len(tokens) == starts[-1] and len(sentences) == shard_starts[-1]
    return (
        [sentences[start:end] for start, end in zip(shard_starts, shard_starts[1:])],
        CorpusAudit.read(folder / AUDIT),
    )


@pytest.mark.parametrize("at_once", [None, 7])
def test_the_text_can_be_read_back(
    at_once: Optional[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if at_once:  # all that is done in parts, in small ones
        monkeypatch.setattr(shard_blocks, "BLOCK_SIZE", at_once)
        monkeypatch.setattr(preparation, "_NUMBERS_AT_ONCE", at_once)
        monkeypatch.setattr(preparation, "_WORDS_AT_ONCE", at_once)
    shards, audit = read_back(TEXTS, tmp_path / "prepared")
    lines = [path.read_text(encoding="utf-8").splitlines() for path in TEXTS]
    assert shards == [[line.split() for line in shard] for shard in lines]
    counts = Counter(word for shard in shards for sentence in shard for word in sentence)
    assert audit == CorpusAudit(
        tokens=sum(counts.values()),
        sentences=sum(map(len, lines)),
        distinct_words=len(counts),
        cut_share=0.0,
        duplicate_lines=0,
        blank_lines=0,
        bytes_read=sum(path.stat().st_size for path in TEXTS),
    )
    words = WordTable(tmp_path / "prepared")
    in_order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    assert list(zip(words, words.counts.tolist())) == in_order


def test_line_ends_end_a_sentence_and_all_white_space_separates_words(tmp_path: Path) -> None:
    text = "\ufeffa\u2028b\x85c\x0cd\xa0e\u3000f\rg\x1ch\ti\n\nj\u200bk\r\n"
    shards, audit = prepared(tmp_path, text)
    assert shards == [[list("abcdef"), list("ghi"), ["j\u200bk"]]]
    assert (audit.sentences, audit.blank_lines) == (3, 1)


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    shards, audit = prepared(tmp_path, "a b\nc", "d\n")
    assert shards == [[["a", "b"], ["c"]], [["d"]]]
    assert audit.blank_lines == 0


def test_words_are_ordered_by_frequency_and_then_by_alphabet(tmp_path: Path) -> None:
    prepared(tmp_path, "b a ä c c\nä B b\n")
    words = WordTable(tmp_path / "prepared")
    assert list(words) == ["b", "c", "ä", "B", "a"]
    assert words.counts.tolist() == [2, 2, 2, 1, 1]


def test_long_sentences_are_cut(tmp_path: Path) -> None:
    shards, audit = prepared(tmp_path, "a b c d\ne\nf g h\n", max_tokens=2)
    assert shards == [[["a", "b"], ["e"], ["f", "g"]]]
    assert (audit.tokens, audit.distinct_words) == (5, 5)


def test_a_tokenizer_splits_each_line(tmp_path: Path) -> None:
    shards, audit = prepared(
        tmp_path, "ab12, c\n...\n  \n\nd\n", tokenizer=LettersDigitsTokenizer(), max_tokens=3
    )
    assert shards == [[["ab", "12", ","], [".", ".", "."], ["d"]]]
    assert audit.blank_lines == 2


def test_tokens_without_text_are_none(tmp_path: Path) -> None:
    shards, _ = prepared(tmp_path, " a b \r\n", tokenizer=EmptyTokens())
    assert shards == [[["a", "b"]]]


def test_the_audit_counts_repeated_lines_wherever_they_are(tmp_path: Path) -> None:
    _, audit = prepared(tmp_path, "a b\nc\na b\n\n\n", "c\nb a\na b\n")
    assert (audit.duplicate_lines, audit.blank_lines) == (3, 2)


def test_the_audit_knows_the_share_of_tokens_that_are_cut(tmp_path: Path) -> None:
    fits, too_long, too_many_bytes = "x" * 48, "y" * 49, "ä" * 25
    text = f"{fits} {too_long} {too_many_bytes}\n{too_long} {fits}\n"
    assert prepared(tmp_path, text)[1].cut_share == 3 / 5


def test_shards_may_be_empty(tmp_path: Path) -> None:
    shards, _ = prepared(tmp_path, "", "a\n", " \n\t\n", "b\n")
    assert shards == [[], [["a"]], [], [["b"]]]


def test_a_corpus_without_a_token_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="shard-0.txt.*shard-1.txt: expected sentences"):
        prepared(tmp_path, "", "\n \n")


def test_nothing_else_stays_in_the_folder(tmp_path: Path) -> None:
    prepared(tmp_path, "a\n")
    assert sorted(path.name for path in (tmp_path / "prepared").iterdir()) == [
        "audit.json",
        "sentence_starts.bin",
        "shard_starts.bin",
        "tokens.bin",
        "word_counts.bin",
        "word_starts.bin",
        "words.bin",
    ]
