from typing import Any

import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.static_vectors import PpmiSvd, count_co_occurrences, positive_mutual_information
from tests.static_vectors.tiny_texts import lines_of_topics, share_of_right_neighbours, text_of

TEXT = text_of(*lines_of_topics())


def test_words_of_one_topic_come_near_each_other() -> None:
    vectors = PpmiSvd(dim=8).vectors_of(TEXT)
    assert share_of_right_neighbours(TEXT.words, vectors) > 0.95


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_it_is_the_decomposition_that_is_computed_exactly(exponent: float) -> None:
    vectors = PpmiSvd(dim=5, exponent=exponent).vectors_of(TEXT)
    information = positive_mutual_information(count_co_occurrences(TEXT, 5)).toarray()
    left, values, _ = numpy.linalg.svd(information.astype(numpy.float64))
    expected = left[:, :5] * values[:5] ** exponent
    # The sign of a dimension means nothing.
    signs = numpy.sign((vectors * expected).sum(axis=0))
    numpy.testing.assert_allclose(vectors * signs, expected, atol=1e-3)


def test_in_all_dimensions_the_information_is_whole() -> None:
    text = text_of("a b c", "c a d", "d d b a")
    vectors = PpmiSvd(dim=4, smoothing=1.0, exponent=1.0).vectors_of(text).astype(numpy.float64)
    information = positive_mutual_information(count_co_occurrences(text, 5), smoothing=1.0)
    numpy.testing.assert_allclose(
        vectors @ vectors.T, (information @ information.T).toarray(), atol=1e-5
    )


def test_the_same_seed_gives_the_same_vectors() -> None:
    vectors = PpmiSvd(dim=8, seed=7).vectors_of(TEXT)
    assert numpy.array_equal(PpmiSvd(dim=8, seed=7).vectors_of(TEXT), vectors)


@pytest.mark.parametrize(
    "option, value", [("window", 1), ("shift", 2.0), ("smoothing", 1.0), ("exponent", 1.0)]
)
def test_every_setting_matters(option: str, value: Any) -> None:
    settings: Any = {"dim": 8, option: value}
    default = numpy.abs(PpmiSvd(dim=8).vectors_of(TEXT))
    assert not numpy.allclose(numpy.abs(PpmiSvd(**settings).vectors_of(TEXT)), default, atol=1e-3)


def test_more_dimensions_than_words_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match="--dim of at most 3, .* got 4. .*--min-count"):
        PpmiSvd(dim=4).vectors_of(text_of("a b c"))


@pytest.mark.parametrize("lines", [("a", "b"), ("a a",)])
def test_words_that_have_nothing_to_do_with_each_other_are_an_error(lines: tuple) -> None:
    with pytest.raises(ConfigurationError, match="none within --window 5 with --shift 1$"):
        PpmiSvd(dim=1).vectors_of(text_of(*lines))


@pytest.mark.parametrize(
    "option, value, expected",
    [
        ("dim", 0, "--dim of 1 or more, got 0"),
        ("window", 0, "--window of 1 or more, got 0"),
        ("shift", 0.5, "--shift of 1 or more, got 0.5"),
        ("smoothing", 1.5, "--smoothing of 0 to 1, got 1.5"),
        ("exponent", -1.0, "--exponent of 0 to 1, got -1.0"),
        ("seed", -1, "--seed of 0 to 4294967295, got -1"),
    ],
)
def test_a_setting_that_makes_no_sense_is_an_error(option: str, value: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^expected {expected}$"):
        PpmiSvd(**{option: value})
