from dataclasses import replace
from pathlib import Path

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch import read_bilm
from elmo_scratch.data.spelling import CharacterWordIndexer
from elmo_scratch.files.identity import identity_of
from elmo_scratch.interop import reading
from elmo_scratch.interop.archives.archive import archive_files
from tests import PROJECT_ROOT
from tests.tiny_elmo import OPTIONS, OfficialFiles, write_files

GOLDEN = PROJECT_ROOT / "tests" / "golden"
ARCHIVE = GOLDEN / "characters" / "model.tar.gz"


def test_official_files_are_read_as_a_pair_or_a_folder(files: OfficialFiles) -> None:
    folder = Path(files.weights).parent
    pair, both = read_bilm(files.weights, files.options), read_bilm(folder)
    assert all(map(torch.equal, pair.bilm.parameters(), both.bilm.parameters()))
    assert pair.word_indexer == both.word_indexer == CharacterWordIndexer(50)
    assert pair.files.identity == identity_of([Path(files.options), Path(files.weights)])
    assert both.files.identity == pair.files.identity
    # A training that builds it again gets the same.
    again = both.blueprint.build()
    again.load_state_dict(both.bilm.state_dict())
    assert again.state_memory.state == both.bilm.state_memory.state == "reset"


def test_weights_alone_are_an_error(files: OfficialFiles) -> None:
    with pytest.raises(ConfigurationError, match="weights.hdf5: official weights need their opt"):
        read_bilm(files.weights)


def test_official_files_of_words_need_the_words(tmp_path: Path) -> None:
    write_files(tmp_path, replace(OPTIONS, char_cnn=None), num_words=5)
    with pytest.raises(ConfigurationError, match="options.json: .* numbers of words. Put"):
        read_bilm(tmp_path)
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nriver\n")
    with pytest.raises(ConfigurationError, match="vocab.txt: expected as many words .* 5, but it"):
        read_bilm(tmp_path)
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nriver\nbank\n")
    batch = read_bilm(tmp_path).word_indexer.spell([["bank", "River"]])
    assert batch.ids.tolist() == [[5, 3]]


def test_an_archive_is_told_by_its_own_files() -> None:
    assert read_bilm(ARCHIVE).files.identity == identity_of(archive_files(ARCHIVE))


def test_a_name_is_resolved_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "resolve_model", {"tiny": str(ARCHIVE)}.__getitem__)
    assert read_bilm("tiny").bilm.width == 8
    assert reading.found_model("tiny") == ARCHIVE


def test_what_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="gone: there is no such"):
        read_bilm(tmp_path / "gone")
    with pytest.raises(ConfigurationError, match="it holds no config.json"):
        read_bilm(tmp_path)
