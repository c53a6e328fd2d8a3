import os
from pathlib import Path
from typing import List

import h5py
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders.layer_file import TokenNumbers, shared_token_numbers
from tests.interop.layer_files.tiny_layers import FACTS, write_layers

SENTENCES = ["The river rose .", "a", "", "x  y\tz", "a", "Où est 🦩 ?"]
"""Of 4, 1, 0, 3, 1 and 4 tokens."""


@pytest.fixture
def numbers(tmp_path: Path) -> TokenNumbers:
    return TokenNumbers(str(write_layers(tmp_path / "layers.hdf5", SENTENCES)))


def test_tokens_are_numbered_one_after_the_other(numbers: TokenNumbers) -> None:
    # The file's map has the repeated "a" once, where it was last.
    found = [list(numbers.of(sentence.split())) for sentence in SENTENCES]
    assert found[1] == found[4]
    first = numbers.before_first + 1
    assert sorted(sum(found[:4] + found[5:], [])) == list(range(first, first + 12))
    assert 0 < first < first + 12 < 2**62
    assert len(numbers) == 12
    assert numbers.num_sentences == 5


def test_a_token_is_found_by_its_number(numbers: TokenNumbers) -> None:
    for line, sentence in enumerate(SENTENCES):
        found = numpy.array(numbers.of(sentence.split()), dtype="int64")
        places = numbers.places(found)
        assert places.offsets.tolist() == list(range(len(sentence.split())))
        for place in places.sentences:
            assert numbers.key(place) == str(4 if sentence == "a" else line)
            assert numbers.num_tokens(place) == len(sentence.split())


def test_a_text_without_tokens_has_no_numbers(numbers: TokenNumbers, tmp_path: Path) -> None:
    assert list(numbers.of([])) == []
    without = TokenNumbers(str(write_layers(tmp_path / "other.hdf5", ["one"])))
    assert list(without.of([])) == []


@pytest.mark.parametrize(
    "words",
    [
        ["The", "river", "rose"],
        ["The", "river rose", "."],
        ["the", "river", "rose", "."],
        ["x", "", "y", "z"],
        ["x", " ", "y", "z"],
        ["", "a"],
    ],
)
def test_a_sentence_that_is_not_in_the_file_is_an_error(
    words: List[str], numbers: TokenNumbers
) -> None:
    with pytest.raises(
        ConfigurationError, match="layers.hdf5: expected the layers of the . tok"
    ) as error:
        numbers.of(words)
    assert repr(" ".join(words)) in error.value.message


def test_a_token_may_hold_spaces_where_the_export_knew_it(tmp_path: Path) -> None:
    # As `allennlp elmo` writes {"tokens": ["New York", "sleeps"]}.
    numbers = TokenNumbers(str(write_layers(tmp_path / "layers.hdf5", ["New▁York sleeps"])))
    assert len(numbers.of(["New York", "sleeps"])) == 2


def test_a_long_sentence_is_shown_by_its_beginning(numbers: TokenNumbers) -> None:
    with pytest.raises(ConfigurationError) as error:
        numbers.of(["word"] * 10_000)
    assert "10000 tokens 'word word" in error.value.message
    assert len(error.value.message) < 1000


@pytest.mark.parametrize("number", [0, 13, -1])
def test_a_number_of_no_token_is_an_error(number: int, numbers: TokenNumbers) -> None:
    first = numbers.before_first
    with pytest.raises(ConfigurationError, match="those of another one came.*the same file"):
        numbers.places(numpy.array([first + 1, first + number]))


@pytest.mark.parametrize("others", [SENTENCES[::-1], [*SENTENCES, "more"], ["a b", "c"]])
def test_the_numbers_of_another_text_are_others(
    others: List[str], numbers: TokenNumbers, tmp_path: Path
) -> None:
    other = TokenNumbers(str(write_layers(tmp_path / "other.hdf5", others)))
    found = numpy.array(other.of(others[0].split()))
    with pytest.raises(ConfigurationError, match="layers.hdf5: .*those of another one came"):
        numbers.places(found)
    again = TokenNumbers(str(write_layers(tmp_path / "again.hdf5", SENTENCES)))
    assert list(again.of(["a"])) == list(numbers.of(["a"]))


def test_pooled_vectors_are_an_error(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["a b"], FACTS._replace(pool="mean"))
    with pytest.raises(ConfigurationError, match="vectors of tokens.*without --pool"):
        TokenNumbers(str(path))


def test_a_file_that_forgot_its_sentences_is_an_error(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["a b"], has_index=False)
    with pytest.raises(ConfigurationError, match="without --forget-sentences"):
        TokenNumbers(str(path))


def test_a_file_with_sentences_for_keys_will_do(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "a.hdf5", ["a b", "c"], keys=["a b", "c"], has_index=False)
    numbers = TokenNumbers(str(path))
    found = sorted([*numbers.of(["a", "b"]), *numbers.of(["c"])])
    assert [number - numbers.before_first for number in found] == [1, 2, 3]


def test_a_missing_file_is_an_error_that_helps(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="none.hdf5: there is no such file.*--overrides"):
        shared_token_numbers(str(tmp_path / "none.hdf5"))


def test_who_asks_for_the_same_file_shares_its_numbers(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["a b", "c"])
    numbers = shared_token_numbers(str(path))
    assert shared_token_numbers(str(path)) is numbers
    write_layers(path, ["a b", "c", "d"])
    os.utime(path, ns=(1, 1))
    assert len(shared_token_numbers(str(path))) == 4


def test_a_file_of_allennlp_0_9_will_do(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["a b", "c"])
    with h5py.File(path, "r+") as file:
        for name in list(file.attrs):
            del file.attrs[name]
    assert len(TokenNumbers(str(path))) == 3
