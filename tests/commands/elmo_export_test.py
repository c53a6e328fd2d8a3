import logging
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import h5py
import pytest

from elmo_scratch.interop import export, read_bilm_archive, read_official_bilm
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.commands.conftest import Allennlp
from tests.tiny_archives import archive_of

FILES = ["options.json", "vocab.txt", "weights.hdf5"]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a biLM of characters."""
    return archive_of(tmp_path_factory.mktemp("archive"))


def fails(run: Callable[[], Any]) -> str:
    """The message that the command prints on its way out with exit status 1."""
    with pytest.raises(SystemExit) as stop:
        run()
    assert isinstance(stop.value.code, str)  # which Python prints on stderr before status 1
    assert stop.value.code.startswith("allennlp elmo-export: error: ")
    assert "\n" not in stop.value.code
    return stop.value.code


def test_it_writes_the_bilm_of_an_archive(
    allennlp: Allennlp, archive: Path, tmp_path: Path
) -> None:
    allennlp("elmo-export", archive, "official")
    assert sorted(os.listdir(tmp_path / "official")) == FILES
    written = read_official_bilm("official/options.json", "official/weights.hdf5").state_dict()
    for name, tensor in read_bilm_archive(archive).bilm.state_dict().items():
        assert tensor.equal(written[name]), name


def test_the_output_folder_of_a_training_will_do(
    allennlp: Allennlp, archive: Path, tmp_path: Path
) -> None:
    allennlp("elmo-export", archive.parent, "official")
    assert sorted(os.listdir(tmp_path / "official")) == FILES


def test_an_older_export_is_replaced_only_if_asked(
    allennlp: Allennlp, archive: Path, tmp_path: Path
) -> None:
    allennlp("elmo-export", archive, "official")
    weights = tmp_path / "official" / "weights.hdf5"
    weights.write_text("old")
    message = fails(lambda: allennlp("elmo-export", archive, "official"))
    assert "official: there are files of another biLM already" in message
    assert message.endswith("or replace them by `--overwrite`.")
    assert weights.read_text() == "old"
    allennlp("elmo-export", archive, "official", "--overwrite")
    read_official_bilm("official/options.json", "official/weights.hdf5")


def test_the_help_text_tells_what_there_is(
    allennlp: Allennlp, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as stop:
        allennlp("elmo-export", "--help")
    assert stop.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "usage: allennlp elmo-export" in text
    for part in ("archive_file", "folder", "--overwrite", *FILES, "<S>, </S> and <UNK>"):
        assert part in text


def test_all_commands_together_list_it(allennlp: Allennlp, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        allennlp("--help")
    assert "Write a trained biLM as the files that others read" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize(
    "file, complaint",
    [
        ("none.tar.gz", "none.tar.gz: there is no such archive"),
        ("not_an_archive.tar.gz", "not_an_archive.tar.gz: expected an archive"),
        (".", "it holds no config.json, so it is not the output of a training"),
    ],
)
def test_an_archive_that_is_none_is_an_error(
    file: str, complaint: str, allennlp: Allennlp, tmp_path: Path
) -> None:
    path = FIXTURES_ROOT / "bad" / file
    assert complaint in fails(lambda: allennlp("elmo-export", path, "official"))
    assert os.listdir(tmp_path) == []


def test_a_file_in_place_of_the_folder_is_an_error(
    allennlp: Allennlp, archive: Path, tmp_path: Path
) -> None:
    (tmp_path / "official").write_text("old")
    message = fails(lambda: allennlp("elmo-export", archive, "official"))
    assert "official: expected a folder to write to" in message
    assert (tmp_path / "official").read_text() == "old"


def test_a_full_disk_is_an_error(
    allennlp: Allennlp, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "write_official_bilm", write)
    message = fails(lambda: allennlp("elmo-export", archive, "official"))
    assert "official: [Errno 28] No space left" in message
    assert os.listdir(tmp_path) == []


def test_what_is_lost_is_a_warning(
    allennlp: Allennlp, tmp_path: Path, caplog: pytest.LogCaptureFixture, bilm_archive: Path
) -> None:
    with caplog.at_level(logging.WARNING, logger=export.__name__):
        allennlp("elmo-export", bilm_archive, "official")
    assert "give other programs text in lower case" in caplog.text
    assert sorted(os.listdir(tmp_path / "official")) == FILES


@pytest.mark.exhaustive
def test_in_a_process_of_its_own_an_error_is_exit_status_1_and_one_line(tmp_path: Path) -> None:
    program = (
        "import elmo_scratch, allennlp.commands as commands\n"
        "commands.import_plugins = lambda: None\n"
        "commands.main('allennlp')\n"
    )
    path = os.pathsep.join([str(PROJECT_ROOT), os.environ.get("PYTHONPATH", "")])
    # What other libraries warn of when they are imported is not the command's.
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, "elmo-export", "none.tar.gz", "official"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line == "allennlp elmo-export: error: none.tar.gz: there is no such archive"
    assert ended.stdout == ""
    assert os.listdir(tmp_path) == []


def test_a_model_folder_is_written_and_named_to_what_reads_it(
    allennlp: Allennlp, archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    allennlp("elmo-export", archive, "folder", "--format", "safetensors")
    assert sorted(os.listdir(tmp_path / "folder")) == [
        *("README.md", "config.json", "model.safetensors", "vocab.txt")
    ]
    *places, step = capsys.readouterr().out.splitlines()[-5:]
    assert places == [
        "config       folder/config.json",
        "weights      folder/model.safetensors",
        "vocabulary   folder/vocab.txt",
        "model card   folder/README.md",
    ]
    # What it says can be typed.
    words = shlex.split(step.removeprefix("next"))[1:]
    tour = FIXTURES_ROOT / "text" / "tour.txt"
    allennlp(*[str(tour) if word == "TEXT" else word for word in words])
    allennlp("elmo", tour, "archive.hdf5", "--all", "--weight-file", archive)
    with h5py.File("layers.hdf5") as one, h5py.File("archive.hdf5") as other:
        assert all((one[str(number)][...] == other[str(number)][...]).all() for number in range(12))
    allennlp("elmo-explore", tour, "--archive", "folder", "--word", "crane", "-k", "1")
    message = fails(lambda: allennlp("elmo-export", archive, "folder", "--format", "safetensors"))
    assert message.endswith("or replace them by `--overwrite`.")
