import logging
import os
from pathlib import Path
from typing import Any, Dict, List

import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.elmo import Elmo, _ElmoBiLm

from elmo_scratch import batch_to_ids
from elmo_scratch.data.vocabulary_file import read_vocabulary_file
from elmo_scratch.interop import (
    WordList,
    export,
    export_bilm,
    read_bilm,
    read_bilm_archive,
    read_official_bilm,
)
from elmo_scratch.modules import BiLm
from tests.interop.official.reference import OfficialFiles, computed_layers
from tests.tiny_archives import (
    BILM,
    CHAR_CNN,
    SENTENCES,
    VOCABULARY_LINES,
    WORD_BILM,
    archive_of,
)

UNSEEN = [["The", "zzyzx", "lent", "."], ["river"], ["extraordinarily" * 4, "naïve", "鶴"]]
FILES = ["options.json", "vocab.txt", "weights.hdf5"]


@pytest.fixture(scope="module")
def character_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return archive_of(tmp_path_factory.mktemp("characters"))


@pytest.fixture(scope="module")
def word_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a stock vocabulary, which has the marks of sentence boundaries at its end."""
    return archive_of(tmp_path_factory.mktemp("words"), bilm=WORD_BILM)


def layers_of(bilm: BiLm, ids: torch.Tensor) -> torch.Tensor:
    """Without dropout, from zeros."""
    mask = ids > 0 if ids.dim() == 2 else (ids > 0).any(dim=-1)
    bilm.eval().reset_states()
    with torch.no_grad():
        return bilm(ids, mask).layers


def word_ids(words: WordList, sentences: List[List[str]]) -> torch.Tensor:
    rows = [
        torch.tensor(
            [words.words.index(w) if w in words.words else words.unknown_id for w in sentence]
        )
        for sentence in sentences
    ]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def read_back(folder: Path) -> BiLm:
    return read_official_bilm(folder / "options.json", folder / "weights.hdf5")


@pytest.mark.parametrize("sentences", [SENTENCES, UNSEEN], ids=["seen", "unseen"])
def test_allennlp_computes_the_same_vectors_from_a_trained_bilm_of_characters(
    sentences: List[List[str]], character_archive: Path, tmp_path: Path
) -> None:
    export_bilm(character_archive, tmp_path / "official")
    ids = batch_to_ids(sentences)
    ours = layers_of(read_bilm_archive(character_archive).bilm, ids)
    options, weights = (
        str(tmp_path / "official" / name) for name in ("options.json", "weights.hdf5")
    )
    theirs = torch.stack(_ElmoBiLm(options, weights)(ids)["activations"])
    mask = (torch.nn.functional.pad(ids, (0, 0, 0, 2)) > 0).any(dim=-1)
    assert (ours - theirs)[:, mask].abs().max() < 1e-5
    elmo = Elmo(options, weights, 1, dropout=0.0).eval()
    (mixed,) = elmo(ids)["elmo_representations"]
    inner = (ids > 0).any(dim=-1)
    assert (mixed - ours.mean(dim=0)[:, 1:-1])[inner].abs().max() < 1e-5
    assert ours.std() > 0.01


@pytest.mark.parametrize("has_corpus_vocabulary", [False, True])
@pytest.mark.parametrize("encoder", ["characters", "words"])
def test_what_was_exported_is_read_to_the_bit(
    encoder: str, has_corpus_vocabulary: bool, tmp_path: Path
) -> None:
    bilm = BILM if encoder == "characters" else WORD_BILM
    archive = archive_of(tmp_path, bilm=bilm, has_corpus_vocabulary=has_corpus_vocabulary)
    export_bilm(archive, tmp_path / "official")
    pretrained = read_bilm_archive(archive)
    before, after = pretrained.bilm.state_dict(), read_back(tmp_path / "official").state_dict()
    words = read_vocabulary_file(tmp_path / "official" / "vocab.txt")
    if encoder == "words":
        table = after.pop("token_encoder.embedding.weight")
        own = before.pop("token_encoder.embedding.weight")
        for number, word in enumerate(words, start=1):
            known = pretrained.blueprint.words
            place = known.unknown_id if word == "<UNK>" else known.words.index(word)
            assert torch.equal(table[number], own[place]), word
    assert list(after) == list(before)
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_the_vocabulary_is_in_the_order_of_ids_behind_its_marks(
    word_archive: Path, tmp_path: Path
) -> None:
    export_bilm(word_archive, tmp_path)
    words = read_bilm_archive(word_archive).blueprint.words.words
    assert words[-2:] == ["<S>", "</S>"]
    text = (tmp_path / "vocab.txt").read_text(encoding="utf-8")
    assert text.split("\n") == ["<S>", "</S>", "<UNK>", *words[2:-2], ""]


def test_a_vocabulary_file_comes_out_as_it_went_in(tmp_path: Path) -> None:
    export_bilm(archive_of(tmp_path, has_corpus_vocabulary=True), tmp_path / "official")
    text = (tmp_path / "official" / "vocab.txt").read_text(encoding="utf-8")
    assert text.split("\n") == [*VOCABULARY_LINES, ""]
    assert text == (tmp_path / "vocab.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("sentences", [SENTENCES, UNSEEN], ids=["seen", "unseen"])
def test_rows_of_words_are_lines_of_the_vocabulary_to_another_implementation(
    sentences: List[List[str]], word_archive: Path, tmp_path: Path
) -> None:
    export_bilm(word_archive, tmp_path)
    pretrained = read_bilm_archive(word_archive)
    ours = layers_of(pretrained.bilm, word_ids(pretrained.blueprint.words, sentences)).numpy()
    lines = (tmp_path / "vocab.txt").read_text(encoding="utf-8").split("\n")
    rows = [[lines.index(w) if w in lines else lines.index("<UNK>") for w in s] for s in sentences]
    (theirs,) = computed_layers(OfficialFiles.of(tmp_path), [rows])
    assert numpy.abs(ours - theirs).max() < 1e-5


def test_a_relative_folder_is_made_with_those_above_it(
    character_archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    export_bilm(str(character_archive), "a/b")
    assert sorted(os.listdir(tmp_path / "a" / "b")) == FILES
    assert os.listdir(tmp_path / "a") == ["b"]


def test_other_files_of_the_folder_stay(character_archive: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    export_bilm(character_archive, tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([*FILES, "notes.txt"])
    assert (tmp_path / "notes.txt").read_text() == "mine"


def contents(folder: Path) -> Dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("name", FILES)
def test_an_older_export_is_refused(name: str, character_archive: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_text("old")
    with pytest.raises(ConfigurationError, match=f"already: {name}.*replace them by `--overwrite`"):
        export_bilm(character_archive, tmp_path)
    assert contents(tmp_path) == {name: b"old"}


def test_an_older_export_gives_way_if_it_may_be_replaced(
    character_archive: Path, word_archive: Path, tmp_path: Path
) -> None:
    export_bilm(word_archive, tmp_path / "again")
    export_bilm(character_archive, tmp_path / "again", overwrite=True)
    export_bilm(character_archive, tmp_path / "once")
    assert contents(tmp_path / "again") == contents(tmp_path / "once")


def full_disk(*_: Any, **__: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("writer", ["write_official_bilm", "write_vocabulary_file"])
@pytest.mark.parametrize("has_older", [False, True])
def test_a_write_that_fails_changes_nothing(
    writer: str,
    has_older: bool,
    character_archive: Path,
    word_archive: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "official"
    if has_older:
        export_bilm(word_archive, folder)
    before = contents(folder) if has_older else None
    monkeypatch.setattr(export, writer, full_disk)
    with pytest.raises(OSError, match="No space left"):
        export_bilm(character_archive, folder, overwrite=True)
    assert (contents(folder) if has_older else None) == before
    assert os.listdir(tmp_path) == (["official"] if has_older else [])


def test_a_file_in_place_of_a_folder_is_an_error(character_archive: Path, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    for folder in (path, path / "official"):
        with pytest.raises(ConfigurationError, match="expected a folder to .*file is a file"):
            export_bilm(character_archive, folder)
    assert path.read_text() == "old"


def test_a_folder_in_place_of_a_file_is_an_error(character_archive: Path, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").mkdir()
    with pytest.raises(ConfigurationError, match="vocab.txt: expected a file, but it is a folder"):
        export_bilm(character_archive, tmp_path, overwrite=True)
    assert os.listdir(tmp_path) == ["vocab.txt"]


def test_a_bilm_without_an_official_form_is_an_error(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, bilm={**BILM, "cell_size": 5})
    with pytest.raises(
        ConfigurationError, match="model.tar.gz: there is no official form"
    ) as error:
        export_bilm(archive, tmp_path / "official")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "official").exists()


def warnings_of(archive: Path, folder: Path, caplog: pytest.LogCaptureFixture) -> List[str]:
    with caplog.at_level(logging.WARNING, logger=export.__name__):
        export_bilm(archive, folder)
    return [record.getMessage() for record in caplog.records if record.name == export.__name__]


@pytest.mark.parametrize(
    "change", [{}, {"token_encoder": {**CHAR_CNN, "dim": 16}, "cell_size": 16}]
)
def test_what_allennlp_can_read_is_exported_in_silence(
    change: Dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    archive = archive_of(tmp_path, bilm={**BILM, **change})
    assert warnings_of(archive, tmp_path / "official", caplog) == []
    folder = tmp_path / "official"
    Elmo(str(folder / "options.json"), str(folder / "weights.hdf5"), 1)


def test_what_allennlp_cannot_read_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    archive = archive_of(tmp_path, bilm={**BILM, "use_skip_connections": False})
    (warning,) = warnings_of(archive, tmp_path / "official", caplog)
    assert warning == f"{archive}: AllenNLP can't read it, because it expects skip connections"
    read_back(tmp_path / "official")


def test_lower_case_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    archive = archive_of(tmp_path, bilm=WORD_BILM, indexer={"lowercase_tokens": True})
    lower, words = warnings_of(archive, tmp_path / "official", caplog)
    assert "trained on words in lower case" in lower
    assert "can't read it, because its `Elmo` reads characters, not words" in words


def test_words_that_are_left_out_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    archive = archive_of(tmp_path, lines=["the <UNK> rose", "the bank"])
    (warning,) = warnings_of(archive, tmp_path / "official", caplog)
    assert "vocab.txt lacks 1 words that it can't hold, such as '<UNK>'" in warning


def test_a_warm_state_is_told(character_archive: Path) -> None:
    read = read_bilm(character_archive)
    read.bilm.use_state("warm")
    (told,) = export.shortcomings(read, export.OfficialWords.of(read.blueprint.words))
    assert "no place for the `warm` state" in told
