from typing import Any, List

import numpy
import pandas
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.elmo import batch_to_ids as allennlps_batch_to_ids

import elmo_scratch
from elmo_scratch.data import batch_to_ids

BATCHES: List[List[List[str]]] = [
    [["The", "sentence", "."], ["ELMo", "helps", "disambiguate", "ELMo", "from", "Elmo", "."]],
    [["naïve", "Ελλάδα"], [], ["鶴", "🦩", "שלום"]],
    [[""], ["", "<S>", "</S>", "<UNK>"]],
    [["x" * 10_000, "鶴" * 5_000, "x" * 48, "x" * 49]],
    [["one"]],
]


@pytest.mark.parametrize("batch", BATCHES)
def test_ids_are_those_of_allennlp(batch: List[List[str]]) -> None:
    ids = batch_to_ids(batch)
    assert ids.dtype == torch.int64
    assert torch.equal(ids, allennlps_batch_to_ids(batch))


def test_a_user_finds_it_where_the_package_begins() -> None:
    assert elmo_scratch.batch_to_ids is batch_to_ids


def test_tuples_do_as_well() -> None:
    assert torch.equal(batch_to_ids((("a", "b"), ("c",))), batch_to_ids([["a", "b"], ["c"]]))
    assert torch.equal(batch_to_ids(iter([["a", "b"], ["c"]])), batch_to_ids([["a", "b"], ["c"]]))


def test_arrays_and_series_do_as_well() -> None:
    expected = batch_to_ids([["naïve", "b"], [], ["鶴"]])
    arrays = [numpy.array(words, dtype=str) for words in (["naïve", "b"], [], ["鶴"])]
    assert torch.equal(batch_to_ids(arrays), expected)  # type: ignore[arg-type]
    series = [pandas.Series(words, dtype=object) for words in arrays]
    assert torch.equal(batch_to_ids(series), expected)
    assert torch.equal(batch_to_ids(pandas.Series([["naïve", "b"], [], ["鶴"]])), expected)


def test_ids_can_be_written_to_and_no_later_batch_sees_it() -> None:
    ids = batch_to_ids([["the", "word"]])
    expected = ids.clone()
    ids.fill_(7)
    assert torch.equal(batch_to_ids([["the", "word"]]), expected)


@pytest.mark.parametrize("size", [2, 0, -1, 4097])
def test_too_few_ids_for_a_sentence_mark_or_too_many_are_an_error(size: int) -> None:
    with pytest.raises(ConfigurationError, match=f"from 3 to 4096, but got {size}"):
        batch_to_ids([["word"]], size)


@pytest.mark.parametrize("size", [3, 8, 60])
def test_words_can_have_another_number_of_ids(size: int) -> None:
    ids = batch_to_ids([["a", "disambiguate"], ["b"]], size)
    assert ids.shape == (2, 2, size)
    assert ids[0, 0].tolist() == [259, ord("a") + 1, 260] + [261] * (size - 3)
    assert ids[1, 1].tolist() == [0] * size


def test_a_batch_of_nothing_has_the_axes_of_a_batch() -> None:
    assert batch_to_ids([]).shape == (0, 0, 50)
    assert batch_to_ids([], 20).shape == (0, 0, 20)
    assert batch_to_ids([]).dtype == torch.int64


def test_empty_sentences_keep_the_axis_of_characters() -> None:
    # AllenNLP's have only two axes, which no biLM reads.
    assert batch_to_ids([[], []]).shape == (2, 0, 50)
    assert batch_to_ids([[], []]).dtype == torch.int64


@pytest.mark.parametrize(
    "batch, wrong",
    [
        (["The sentence ."], "'The sentence .'"),
        ([["fine"], "The sentence ."], "'The sentence .'"),
        ([["The", 3]], r"\['The', 3\]"),
        ([["The", None]], r"\['The', None\]"),
        ([["The", b"sentence"]], "b'sentence'"),
        ([[["The"], ["sentence"]]], r"\[\['The'\], \['sentence'\]\]"),
        ([3], "3"),
        ([["fine"], None], "None"),
    ],
)
def test_what_is_no_list_of_words_is_shown(batch: Any, wrong: str) -> None:
    number = len(batch) - 1
    with pytest.raises(ValueError, match=f"sentence {number} to be a sequence of words.*{wrong}"):
        batch_to_ids(batch)


def test_a_text_in_place_of_a_batch_is_an_error() -> None:
    # Its letters would pass for sentences.
    with pytest.raises(ValueError, match="sentence 0 to be a sequence of words, but got 'T'"):
        batch_to_ids("The sentence .")
