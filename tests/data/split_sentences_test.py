from typing import Any

import pytest

from elmo_scratch.data.split_sentences import check_sentences


@pytest.mark.parametrize("sentences", [[], [[]], [["one"], [], ["", "two"]], (("one",), ["two"])])
def test_lists_and_tuples_of_words_pass(sentences: Any) -> None:
    check_sentences(sentences)


@pytest.mark.parametrize("wrong", ["A text", b"bytes", 3, None, ["one", 2], [["one"]], {"one": 1}])
def test_anything_else_is_shown_with_its_number(wrong: Any) -> None:
    with pytest.raises(ValueError, match="sentence 1 to be a sequence of words, but got"):
        check_sentences([["fine"], wrong])


def test_a_text_in_the_place_of_all_sentences_is_an_error() -> None:
    with pytest.raises(ValueError, match="sentence 0 to be a sequence of words, but got 'A'"):
        check_sentences("A text")
