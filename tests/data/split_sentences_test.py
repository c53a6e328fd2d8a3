from typing import Any, List, NamedTuple, Optional

import numpy
import pandas
import pytest
import torch
from allennlp.data import Token

from elmo_scratch import ElmoEmbedder, SentenceLayers, batch_to_ids
from elmo_scratch.data.spelling import TextToken, are_words, words_of
from tests import FIXTURES_ROOT


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
    assert [list(words) for words in words_of(sentences)] == [list(words) for words in sentences]


class Word(NamedTuple):
    """What spaCy's tokens have in common with AllenNLP's."""

    text: Optional[str]


def test_tokens_are_words() -> None:
    spacy_token: TextToken = Word("three")
    sentences: List[Any] = [[Token("one"), Token("New York")], ["two", spacy_token]]
    assert words_of(sentences) == [["one", "New York"], ["two", "three"]]
    assert not are_words(sentences[0])
    assert torch.equal(batch_to_ids([[Token("one")]]), batch_to_ids([["one"]]))


def test_tokens_have_the_vectors_of_their_words() -> None:
    folder = FIXTURES_ROOT / "elmo" / "residual"
    options, weights = folder / "options.json", folder / "weights.hdf5"
    tokens, words = [Token("the"), Token("bank")], ["the", "bank"]
    layers = SentenceLayers.from_official(options, weights, state="reset")
    assert numpy.array_equal(layers([tokens])[0], layers([words])[0])
    embedder = ElmoEmbedder(options, weights, state="reset")
    assert numpy.array_equal(embedder.embed_sentence(tokens), layers([words])[0])
    assert numpy.array_equal(next(embedder.embed_sentences([tokens])), layers([words])[0])


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
    [Word(None)],
    [Token()],
    numpy.array("one"),
    numpy.array([["one"]]),
    numpy.array([1, 2]),
]


def test_anything_else_is_shown_with_its_number() -> None:
    for wrong in NO_SENTENCES:
        with pytest.raises(ValueError, match="sentence 1 to be a sequence of words, but got"):
            words_of([["fine"], wrong])


def test_a_text_in_the_place_of_all_sentences_is_an_error() -> None:
    with pytest.raises(ValueError, match="sentence 0 to be a sequence of words, but got 'A'"):
        words_of("A text")
