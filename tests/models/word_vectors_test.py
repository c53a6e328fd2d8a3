import logging
from pathlib import Path

import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import WordList
from elmo_scratch.interop.static_vectors import write_static_vectors
from elmo_scratch.models import language_model
from elmo_scratch.models.language_model import start_words
from elmo_scratch.modules.token_encoders import CharCnnEncoder, WordEncoder

WORDS = WordList(["@@PADDING@@", "@@UNKNOWN@@", "a", "b", "é", "<S>", "</S>"], "@@UNKNOWN@@")
DIM = 3


@pytest.fixture
def encoder() -> WordEncoder:
    torch.manual_seed(0)
    return WordEncoder(dim=DIM, sparse=False, **WORDS.sizes())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Vectors of two of the words, of one that is unknown, and of padding."""
    path = tmp_path / "vectors.txt"
    vectors = numpy.arange(4 * DIM, dtype=numpy.float32).reshape(4, DIM)
    write_static_vectors(["é", "unseen", "@@PADDING@@", "a"], vectors, path)
    return path


def test_words_of_the_file_get_its_vectors_and_others_keep_theirs(
    encoder: WordEncoder, path: Path
) -> None:
    before = encoder.embedding.weight.detach().clone()
    start_words(encoder, WORDS, path)
    weight = encoder.embedding.weight
    assert weight.requires_grad
    assert weight[4].tolist() == [0, 1, 2]
    assert weight[2].tolist() == [9, 10, 11]
    assert torch.equal(weight[[1, 3, 5, 6]], before[[1, 3, 5, 6]])


def test_padding_stays_zero(encoder: WordEncoder, path: Path) -> None:
    start_words(encoder, WORDS, path)
    assert not encoder.embedding.weight[0].any()


def test_it_says_how_many_words_were_there(
    encoder: WordEncoder, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger=language_model.__name__):
        start_words(encoder, WORDS, path)
    assert f"2 of 6 words start from the vectors in {path}" in caplog.text


def test_vectors_of_another_size_are_an_error(path: Path) -> None:
    encoder = WordEncoder(dim=5, sparse=False, **WORDS.sizes())
    with pytest.raises(ConfigurationError, match="vectors.txt: expected vectors of 5 .* have 3"):
        start_words(encoder, WORDS, path)


def test_a_file_without_any_of_the_words_is_an_error(encoder: WordEncoder, path: Path) -> None:
    words = WordList(["", "@@UNKNOWN@@", "A", "B", "É", "<S>", "</S>"], "@@UNKNOWN@@")
    with pytest.raises(ConfigurationError, match="none of the 6 words .* in lower case or not"):
        start_words(encoder, words, path)


def test_a_bilm_of_characters_has_no_words_to_start(path: Path) -> None:
    encoder = CharCnnEncoder(dim=DIM, filters=[(1, 4)], character_dim=2)
    with pytest.raises(ConfigurationError, match="needs the token encoder `word`.*CharCnnEncoder"):
        start_words(encoder, WORDS, path)
