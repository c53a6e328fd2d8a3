import os
from contextlib import nullcontext
from pathlib import Path
from typing import List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.vocabulary_file import (
    is_writable,
    read_vocabulary_file,
    write_vocabulary_file,
)
from elmo_scratch.files import atomic

WORDS = ["</S>", "<S>", "<UNK>", "the", "Größe", "a\u2028b", "x\0y"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vocab.txt"


def test_what_is_written_is_read_again(path: Path) -> None:
    write_vocabulary_file(WORDS, path)
    assert path.read_bytes() == "".join(f"{word}\n" for word in WORDS).encode("utf-8")
    assert read_vocabulary_file(path) == WORDS


def test_line_ends_spaces_and_a_byte_order_mark_are_no_part_of_words(path: Path) -> None:
    path.write_bytes("\ufeff<S>\r\n</S> \n<UNK>\n\tthe".encode("utf-8"))
    assert read_vocabulary_file(path) == ["<S>", "</S>", "<UNK>", "the"]


def test_the_line_that_the_original_passes_over_is_no_word(path: Path) -> None:
    path.write_text("<S>\n</S>\n<UNK>\n!!!MAXTERMID\nthe\n")
    assert read_vocabulary_file(path) == ["<S>", "</S>", "<UNK>", "the"]


@pytest.mark.parametrize(
    "content, complaint",
    [
        (b"<S>\n</S>\n<UNK>\na\nb\na\n", "vocab.txt, line 6: the word 'a' is in line 4 already"),
        (b"<S>\n</S>\n\n<UNK>\n", "vocab.txt, line 3: expected a word, but the line is blank"),
        (b"<S>\n</S>\n<UNK>\n \n", "vocab.txt, line 4: expected a word, but the line is blank"),
        (b"<S>\n</S>\nthe\n", "vocab.txt: expected .*, but <UNK> is missing"),
        (b"<UNK>\nthe\n", "vocab.txt: expected .*, but <S> and </S> is missing"),
        (b"<S>\n</S>\n<UNK>\nGr\xf6\xdfe\n", "vocab.txt, line 4: expected UTF-8 .* byte 3 .* 0xf6"),
        (b"", "vocab.txt: expected at least one line of text, but it is empty"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_an_error_that_names_the_line(
    content: bytes, complaint: str, path: Path
) -> None:
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=complaint):
        read_vocabulary_file(path)


def test_a_missing_file_is_an_error_that_names_it(path: Path) -> None:
    with pytest.raises(ConfigurationError, match="vocab.txt: there is no such file"):
        read_vocabulary_file(path)


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["<S>", "</S>", "a"], "<UNK> is missing"),
        ([*WORDS, "the"], "the word 'the' is twice"),
        ([*WORDS, "two\nlines"], "'two.*lines' can't be written"),
        ([*WORDS, "@@NEWLINE@@"], "'@@NEWLINE@@' can't be written"),
        ([*WORDS, " a"], "' a' can't be written"),
    ],
)
def test_words_that_make_no_vocabulary_are_an_error_and_an_older_file_stays(
    words: List[str], complaint: str, path: Path
) -> None:
    path.write_text("old")
    with pytest.raises(ConfigurationError, match=f"vocab.txt: .*{complaint}"):
        write_vocabulary_file(words, path)
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["vocab.txt"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is full")
def test_a_disk_that_fills_up_leaves_the_older_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("old")
    monkeypatch.setattr(atomic, "unfinished", lambda *_, **__: nullcontext("/dev/full"))
    with pytest.raises(OSError, match="No space left"):
        write_vocabulary_file(WORDS, path)
    assert path.read_text() == "old"


@pytest.mark.parametrize("word", ["", " ", "a ", "a\rb", "!!!MAXTERMID", "x@@NEWLINE@@", "\u2028"])
def test_some_words_would_be_read_as_others(word: str) -> None:
    assert not is_writable(word)


@pytest.mark.parametrize("word", ["a", "a b", "a\u2028b", "\ufeff", "\u200b", "@@UNKNOWN@@"])
def test_most_words_can_be_written(word: str) -> None:
    assert is_writable(word)
