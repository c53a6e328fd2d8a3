import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.spelling import CharacterWordIndexer
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.files.identity import identity_of
from elmo_scratch.interop import read_bilm_archive, read_official_bilm
from elmo_scratch.interop.archives.archive import archive_files
from elmo_scratch.interop.archives.blueprint import ListedWordIndexer
from elmo_scratch.modules import BiLm
from tests.tiny_elmo import OPTIONS, OfficialFiles, write_files

each_state = pytest.mark.parametrize("state", ["carry", "reset", "warm"])


def same_weights(one: BiLm, other: BiLm) -> bool:
    return all(map(torch.equal, one.parameters(), other.parameters()))


@each_state
def test_official_files_are_read_by_their_characters(files: OfficialFiles, state: str) -> None:
    layers = SentenceLayers.from_official(files.options, Path(files.weights), state=state)
    assert same_weights(layers.bilm, read_official_bilm(*files))
    assert layers.bilm.state_memory.state == state
    assert isinstance(layers.word_indexer, CharacterWordIndexer)
    assert layers.word_indexer.max_characters_per_token == 50
    assert layers.files.identity == identity_of([Path(files.options), Path(files.weights)])


@each_state
def test_an_archive_is_read_as_in_its_training(bilm_archive: Path, state: str) -> None:
    layers = SentenceLayers.from_archive(str(bilm_archive), state=state)
    assert same_weights(layers.bilm, read_bilm_archive(bilm_archive).bilm)
    assert layers.bilm.state_memory.state == state
    assert isinstance(layers.word_indexer, ListedWordIndexer)
    assert layers.files.identity == identity_of([bilm_archive])


def test_a_bilm_that_was_stored_warm_is_warm_already(bilm_archive: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bilm_archive.parent, tmp_path / "run")
    config = json.loads((folder / "config.json").read_text())
    config["model"]["bilm"]["state"] = "warm"
    (folder / "config.json").write_text(json.dumps(config))
    weights = torch.load(folder / "best.th")
    memory = read_bilm_archive(bilm_archive).bilm.new_state_memory("warm")
    for name, part in memory.state_dict().items():
        weights[f"bilm.state_memory.{name}"] = torch.full_like(part, 0.25)
    torch.save(weights, folder / "best.th")
    warm = SentenceLayers.from_archive(folder, state="warm").bilm.state_memory
    assert all((part == 0.25).all() for part in warm.start(torch.zeros(()), 2))
    assert not SentenceLayers.from_archive(folder, state="reset").bilm.state_memory.state_dict()


def test_official_files_of_words_are_an_error(tmp_path: Path) -> None:
    options, weights = write_files(tmp_path, replace(OPTIONS, char_cnn=None), num_words=7)
    with pytest.raises(ConfigurationError, match=r"options.json: expected a biLM of characters"):
        SentenceLayers.from_official(options, weights, state="reset")


def test_files_that_are_missing_are_an_error(files: OfficialFiles, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="gone.hdf5: there is no such file"):
        SentenceLayers.from_official(files.options, tmp_path / "gone.hdf5", state="reset")
    with pytest.raises(ConfigurationError, match="gone.tar.gz: there is no such archive"):
        SentenceLayers.from_archive(tmp_path / "gone.tar.gz", state="reset")


def test_the_folder_of_a_training_will_do(bilm_archive: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bilm_archive.parent, tmp_path / "run")
    layers = SentenceLayers.from_archive(folder, state="reset")
    assert same_weights(layers.bilm, read_bilm_archive(bilm_archive).bilm)
    assert layers.files.identity == identity_of(archive_files(folder))
