import logging
from typing import List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch import static_vectors
from elmo_scratch.static_vectors import VectorText
from tests.static_vectors.tiny_texts import numbered, text_of

LINES = ["b a b", "c", "B a A b d", "b"]


def sentences_of(text: VectorText) -> List[List[List[str]]]:
    """The words of the sentences of each block."""
    blocks = []
    for block in text.blocks():
        sentences: dict = {}
        for token, sentence in zip(block.tokens.tolist(), block.sentences.tolist()):
            sentences.setdefault(sentence, []).append(text.words[token])
        blocks.append(list(sentences.values()))
    return blocks


def test_words_come_by_falling_frequency_and_then_by_the_alphabet() -> None:
    text = text_of(*LINES)
    assert text.words == ["b", "a", "A", "B", "c", "d"]
    assert text.counts.tolist() == [4, 2, 1, 1, 1, 1]
    assert text.num_tokens == 10


def test_rare_words_get_no_vector_and_their_neighbours_come_together() -> None:
    text = text_of(*LINES, min_count=2)
    assert text.words == ["b", "a"]
    assert text.num_tokens == 6
    assert sentences_of(text) == [[["b", "a", "b"], ["a", "b"], ["b"]]]


def test_so_many_words_get_one_at_most() -> None:
    assert text_of(*LINES, max_words=3).words == ["b", "a", "A"]
    assert text_of(*LINES, max_words=30).words == text_of(*LINES).words


def test_in_lower_case_words_are_counted_together() -> None:
    text = text_of(*LINES, lowercase=True)
    assert text.words == ["b", "a", "c", "d"]
    assert text.counts.tolist() == [5, 3, 1, 1]
    assert sentences_of(text) == [[["b", "a", "b"], ["c"], ["b", "a", "a", "b", "d"], ["b"]]]


def test_a_text_comes_in_blocks_of_whole_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_vectors, "TOKENS_AT_ONCE", 4)
    assert sentences_of(text_of(*LINES)) == [
        [["b", "a", "b"], ["c"]],
        [["B", "a", "A", "b", "d"]],  # longer than a block
        [["b"]],
    ]


def test_words_that_no_file_can_hold_get_no_vector(caplog: pytest.LogCaptureFixture) -> None:
    text = numbered("New_York is", "New_York was")
    text = text._replace(words=[word.replace("_", " ") for word in text.words])
    with caplog.at_level(logging.WARNING, logger=static_vectors.__name__):
        assert VectorText(text, min_count=1).words == ["is", "was"]
    assert "1 words hold white space" in caplog.text
    assert "'New York'" in caplog.text


def test_it_says_how_much_of_the_text_is_left(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger=static_vectors.__name__):
        text_of(*LINES, min_count=2)
    assert "2 of 6 distinct words get vectors: 60.00 % of 10 tokens" in caplog.text


def test_a_text_of_rare_words_is_an_error() -> None:
    with pytest.raises(
        ConfigurationError, match="--min-count 5 times.*the most frequent one occurs 4 times"
    ):
        text_of(*LINES, min_count=5)


@pytest.mark.parametrize("option", ["min_count", "max_words"])
def test_a_number_out_of_range_is_an_error(option: str) -> None:
    with pytest.raises(
        ConfigurationError, match=f"expected --{option.replace('_', '-')} of 1 or more, got 0"
    ):
        text_of(*LINES, **{option: 0})
