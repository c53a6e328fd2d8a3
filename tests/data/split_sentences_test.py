from typing import Any, List

import numpy
import pandas
import pytest

from elmo_scratch.data.spelling import are_words, check_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        [],
        [[]],
        [["one"], [], ["", "two"]],
        (("one",), ["two"]),
        [numpy.array(["one", "two"]), numpy.array(["one"], dtype=object), {"one": "two"}.values()],
        numpy.array([["one", "two"], ["three", "four"]]),
    ],
    ids=str,
)
def test_lists_tuples_and_arrays_of_words_pass(sentences: Any) -> None:
    check_sentences(sentences)


def test_series_of_words_pass_and_tables_do_not() -> None:
    series = pandas.Series(["one", "two"], index=[7, 3])
    assert are_words(series)
    assert not are_words(pandas.DataFrame({"words": series}))
    assert not are_words(pandas.Series(["one", None]))


NO_SENTENCES: List[Any] = [
    "A text",
    b"bytes",
    3,
    None,
    ["one", 2],
    [["one"]],
    {"one": 1},
    {"one", "two"},
    {"one": 1}.keys(),
    iter(["one"]),
    numpy.array("one"),
    numpy.array([["one"]]),
    numpy.array([1, 2]),
]


def test_anything_else_is_shown_with_its_number() -> None:
    for wrong in NO_SENTENCES:
        with pytest.raises(ValueError, match="sentence 1 to be a sequence of words, but got"):
            check_sentences([["fine"], wrong])


def test_a_text_in_the_place_of_all_sentences_is_an_error() -> None:
    with pytest.raises(ValueError, match="sentence 0 to be a sequence of words, but got 'A'"):
        check_sentences("A text")
