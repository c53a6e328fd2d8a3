import logging
from typing import Any, Iterator, List

import gensim.models
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch import static_vectors
from elmo_scratch.static_vectors import Block, VectorText, Word2Vec
from tests.static_vectors.tiny_texts import lines_of_topics, share_of_right_neighbours, text_of

TEXT = text_of(*lines_of_topics())
SMALL: Any = {"dim": 16, "epochs": 3}


@pytest.mark.parametrize("algorithm", ["skip-gram", "cbow"])
def test_words_of_one_topic_come_near_each_other(algorithm: str) -> None:
    method = Word2Vec(algorithm=algorithm, dim=16, epochs=30, learning_rate=0.1, sample=0.05)
    assert share_of_right_neighbours(TEXT.words, method.vectors_of(TEXT)) > 0.95


def test_before_training_they_do_not() -> None:
    method = Word2Vec(dim=16, epochs=1, learning_rate=0.0001)
    assert share_of_right_neighbours(TEXT.words, method.vectors_of(TEXT)) < 0.6


def test_the_same_seed_gives_the_same_vectors() -> None:
    vectors = Word2Vec(**SMALL, seed=7).vectors_of(TEXT)
    assert numpy.array_equal(Word2Vec(**SMALL, seed=7).vectors_of(TEXT), vectors)
    assert not numpy.allclose(Word2Vec(**SMALL, seed=8).vectors_of(TEXT), vectors)


@pytest.mark.parametrize(
    "option, value",
    [
        ("algorithm", "cbow"),
        ("window", 1),
        ("epochs", 4),
        ("negatives", 2),
        ("sample", 0.0),
        ("learning_rate", 0.05),
    ],
)
def test_every_setting_matters(option: str, value: Any) -> None:
    default = Word2Vec(**SMALL).vectors_of(TEXT)
    assert not numpy.allclose(Word2Vec(**{**SMALL, option: value}).vectors_of(TEXT), default)


def test_threads_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    given: List[int] = []
    original = gensim.models.Word2Vec

    def noted(*arguments: Any, workers: int, **settings: Any) -> Any:
        given.append(workers)
        return original(*arguments, workers=workers, **settings)

    monkeypatch.setattr(gensim.models, "Word2Vec", noted)
    method = Word2Vec(dim=16, epochs=30, learning_rate=0.1, sample=0.05, threads=2)
    assert share_of_right_neighbours(TEXT.words, method.vectors_of(TEXT)) > 0.95
    assert given == [2]


def test_blocks_do_not_change_the_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Word2Vec(**SMALL).vectors_of(TEXT)
    monkeypatch.setattr(static_vectors, "TOKENS_AT_ONCE", 50)
    assert numpy.array_equal(Word2Vec(**SMALL).vectors_of(TEXT), whole)


def test_sentences_are_read_to_their_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    read: List[List[str]] = []

    class Progress:
        def update(self, number: int) -> None:
            read.append([str(number)])

    monkeypatch.setattr(static_vectors, "TOKENS_OF_A_SENTENCE", 2)
    text = text_of("a b c", "d", "a b c d e")
    read.extend(static_vectors._Sentences(text, Progress()))
    sentences = [words for words in read if not words[0].isdigit()]
    assert sentences == [["a", "b"], ["c"], ["d"], ["a", "b"], ["c", "d"], ["e"]]
    assert [words for words in read if words[0].isdigit()] == [["3"], ["1"], ["5"]]


def test_what_reading_fails_with_is_raised_and_nothing_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = []

    def blocks(text: VectorText) -> Iterator[Block]:
        read.append(text)
        yield Block(numpy.array([0, 1]), numpy.array([0, 0]))
        raise OSError("the disk is gone")

    monkeypatch.setattr(VectorText, "blocks", blocks)
    with pytest.raises(OSError, match="the disk is gone"):
        Word2Vec(**SMALL).vectors_of(TEXT)
    assert len(read) == 1  # of the epochs after, none


@pytest.mark.parametrize("largest", ["window", "negatives"])
def test_the_largest_numbers_do_not_overflow(largest: str) -> None:
    settings: Any = {"dim": 2, "epochs": 1, "sample": 0.0, largest: static_vectors.AT_MOST}
    assert numpy.isfinite(Word2Vec(**settings).vectors_of(text_of("a b c"))).all()


@pytest.mark.parametrize(
    "lines, sample, is_warned",
    [(["a b c"], 1e-12, True), (["a", "b"], 0.0, True), (["a b c"], 0.0, False)],
)
def test_there_is_a_warning_if_nothing_is_trained(
    lines: list, sample: float, is_warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, static_vectors.__name__):
        Word2Vec(**SMALL, sample=sample).vectors_of(text_of(*lines))
    assert ("Nothing was trained" in caplog.text) == is_warned


def test_without_gensim_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_vectors, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match="pip install 'gensim>=4.3.3'"):
        Word2Vec()


@pytest.mark.parametrize(
    "option, value, expected",
    [
        ("algorithm", "glove", "--algorithm skip-gram or cbow, got glove"),
        ("dim", 0, "--dim of 1 to 10000, got 0"),
        ("dim", 10**10, "--dim of 1 to 10000, got 10000000000"),
        ("window", 0, "--window of 1 to 10000, got 0"),
        ("window", 3 * 10**9, "--window of 1 to 10000, got 3000000000"),
        ("epochs", 0, "--epochs of 1 or more, got 0"),
        ("negatives", 0, "--negatives of 1 to 10000, got 0"),
        ("negatives", 3 * 10**9, "--negatives of 1 to 10000, got 3000000000"),
        ("threads", 0, "--threads of 1 or more, got 0"),
        ("sample", -0.1, "--sample of 0 to 1, got -0.1"),
        ("learning_rate", 0.0, "--learning-rate of 0.0001 to 1, got 0.0"),
        ("learning_rate", 1e5, "--learning-rate of 0.0001 to 1, got 100000.0"),
        ("learning_rate", float("inf"), "--learning-rate of 0.0001 to 1, got inf"),
        ("learning_rate", float("nan"), "--learning-rate of 0.0001 to 1, got nan"),
        ("seed", -1, "--seed of 0 to 4294967295, got -1"),
    ],
)
def test_a_setting_that_makes_no_sense_is_an_error(option: str, value: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^expected {expected}$"):
        Word2Vec(**{option: value})
