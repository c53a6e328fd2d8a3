from dataclasses import replace
from pathlib import Path

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import load_archive

from elmo_scratch.interop import read_official_bilm
from elmo_scratch.models.pretrained import PretrainedWeights
from tests.tiny_archives import VOCABULARY_LINES, archive_of, write_lines
from tests.tiny_elmo import OPTIONS, OfficialFiles, write_files

OF_WORDS = replace(OPTIONS, char_cnn=None)


def test_official_files_have_a_bilm_and_no_softmax(files: OfficialFiles) -> None:
    point = PretrainedWeights.of_official(files.options, files.weights, None)
    expected = read_official_bilm(files.options, files.weights).state_dict()
    assert list(point.bilm) == list(expected)
    assert all(torch.equal(point.bilm[name], expected[name]) for name in expected)
    assert point.config["cell_size"] == 24
    assert point.softmax == {}


def test_an_archive_has_a_bilm_a_softmax_and_words(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, has_corpus_vocabulary=True)
    point = PretrainedWeights.of_archive(str(archive))
    trained = load_archive(archive).model.state_dict()
    assert set(trained) == {f"bilm.{name}" for name in point.bilm} | {
        f"softmax.{name}" for name in point.softmax
    }
    assert torch.equal(point.softmax["weight"], trained["softmax.weight"])
    assert point.words.words == ["@@PADDING@@", *VOCABULARY_LINES]
    assert point.config["cell_size"] == 12


def test_official_words_are_the_rows_of_their_table(tmp_path: Path) -> None:
    files = write_files(tmp_path, OF_WORDS, num_words=len(VOCABULARY_LINES))
    vocab_file = write_lines(tmp_path / "vocab.txt", VOCABULARY_LINES)
    point = PretrainedWeights.of_official(files.options, files.weights, str(vocab_file))
    assert point.words.words[1:] == VOCABULARY_LINES
    assert point.words.unknown_id == 3
    assert len(point.bilm["token_encoder.embedding.weight"]) == len(point.words.words)


def test_official_words_need_their_vocabulary(tmp_path: Path) -> None:
    files = write_files(tmp_path, OF_WORDS, num_words=10)
    with pytest.raises(ConfigurationError, match="weights.hdf5: .* reads words.*`vocab_file`"):
        PretrainedWeights.of_official(files.options, files.weights, None)


def test_a_vocabulary_of_another_size_is_an_error(tmp_path: Path) -> None:
    files = write_files(tmp_path, OF_WORDS, num_words=11)
    vocab_file = write_lines(tmp_path / "vocab.txt", VOCABULARY_LINES)
    with pytest.raises(ConfigurationError, match="vocab.txt: expected .* rows, 11, but it has 10"):
        PretrainedWeights.of_official(files.options, files.weights, str(vocab_file))
