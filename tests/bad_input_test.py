"""What can be wrong with files, through the commands that read and write them."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Callable, Sequence, Union

import pytest
from allennlp import commands
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.interop import export_model_folder
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.tiny_archives import unpack
from tests.tiny_training import (
    CONFIGS,
    config_on_fixtures,
    logging_as_before,
    params_on_fixtures,
)

BAD = FIXTURES_ROOT / "bad"
DEV = FIXTURES_ROOT / "news" / "dev.csv"
TOUR = FIXTURES_ROOT / "text" / "tour.txt"

BAD_NEWS = [
    ("empty.csv", "empty.csv: expected at least one line of text, but it is empty"),
    ("missing_column.csv", "missing_column.csv, line 4: expected the three columns"),
    ("bad_class.csv", r"bad_class.csv, line 3: expected a class from 1 to 4 .*, but found '5'"),
    ("not_utf8.csv", "not_utf8.csv, line 3: expected UTF-8 text"),
]
NOT_UTF8 = ("not_utf8.txt", "not_utf8.txt, line 2: expected UTF-8 text")

Allennlp = Callable[..., None]


@pytest.fixture
def allennlp(monkeypatch: pytest.MonkeyPatch) -> Allennlp:
    """Runs `allennlp` with these words on its command line."""
    # Other plugins have nothing to add, and allennlp-models would ask the network for corpora.
    monkeypatch.setattr(commands, "import_plugins", lambda: None)

    def run(*words: Union[str, Path]) -> None:
        monkeypatch.setattr(sys, "argv", ["allennlp", *map(str, words)])
        with logging_as_before():
            commands.main("allennlp")

    return run


@pytest.fixture
def bilm_config(tmp_path: Path) -> Callable[[Path], Path]:
    """A config that pre-trains the tiny biLM on a file."""

    def write(train_data: Path) -> Path:
        params = params_on_fixtures(CONFIGS / "bilm" / "fixture.jsonnet")
        params["train_data_path"] = str(train_data)
        return written(params, tmp_path / "bilm.json")

    return write


@pytest.fixture
def classifier_config(bilm_archive: Path, tmp_path: Path) -> Callable[..., Path]:
    """A config that trains a classifier with these settings changed."""

    def write(archive: Path = bilm_archive, **changes: str) -> Path:
        config = CONFIGS / "ag_news" / "elmo_trainable.jsonnet"
        params = params_on_fixtures(config, archive).as_dict(quiet=True)
        return written(Params({**params, **changes}), tmp_path / "classifier.json")

    return write


def written(params: Params, path: Path) -> Path:
    params.to_file(str(path))
    return path


def files_in(folder: Path) -> Sequence[str]:
    return sorted(os.listdir(folder))


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """A folder for nothing but outputs."""
    folder = tmp_path / "outputs"
    folder.mkdir()
    return folder


# Training


@pytest.mark.parametrize(
    "file_name, complaint",
    [
        *BAD_NEWS,
        NOT_UTF8,
        ("empty.txt", "empty.txt: expected sentences, but no line holds a token"),
    ],
)
def test_pre_training_on_a_bad_file_is_an_error(
    file_name: str,
    complaint: str,
    allennlp: Allennlp,
    bilm_config: Callable[[Path], Path],
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        allennlp("train", bilm_config(BAD / file_name), "-s", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "file_name, complaint",
    [
        ("not_utf8.txt", "not_utf8.txt, line 2: expected UTF-8 text, but byte [0-9]+ of the line"),
        ("empty.txt", "empty.txt: expected sentences, but no line holds a token"),
        ("no_such_*.txt", r"no_such_\*.txt: no file matches"),
        ("blank_line.txt", "blank_line.txt: .* are too short for 8 streams .* Make either smaller"),
    ],
)
def test_pre_training_on_a_bad_corpus_is_an_error(
    file_name: str, complaint: str, allennlp: Allennlp, tmp_path: Path
) -> None:
    config = config_on_fixtures(CONFIGS / "bilm" / "fixture_characters.jsonnet")
    config["train_data_path"] = config["vocabulary"]["data_path"] = str(BAD / file_name)
    config["vocabulary"]["min_count"] = 1
    file = written(Params(config), tmp_path / "corpus.json")
    with pytest.raises(ConfigurationError, match=complaint):
        allennlp("train", file, "-s", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("data", ["train_data_path", "validation_data_path"])
@pytest.mark.parametrize("file_name, complaint", BAD_NEWS)
def test_training_a_classifier_on_a_bad_file_is_an_error(
    file_name: str,
    complaint: str,
    data: str,
    allennlp: Allennlp,
    classifier_config: Callable[..., Path],
    tmp_path: Path,
) -> None:
    config = classifier_config(**{data: str(BAD / file_name)})
    with pytest.raises(ConfigurationError, match=complaint):
        allennlp("train", config, "-s", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_training_over_an_archive_that_is_not_one_is_an_error_that_names_it(
    allennlp: Allennlp, classifier_config: Callable[..., Path], tmp_path: Path
) -> None:
    config = classifier_config(archive=BAD / "not_an_archive.tar.gz")
    with pytest.raises(ConfigurationError, match="not_an_archive.tar.gz: expected an archive"):
        allennlp("train", config, "-s", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_training_into_a_folder_that_cannot_be_made_is_an_error_that_names_it(
    allennlp: Allennlp, bilm_config: Callable[[Path], Path], outputs: Path
) -> None:
    (outputs / "file").write_text("old")
    with pytest.raises(ConfigurationError, match="outputs/file/run: Not a directory"):
        allennlp("train", bilm_config(DEV), "-s", outputs / "file" / "run")
    assert files_in(outputs) == ["file"]
    assert (outputs / "file").read_text() == "old"


@pytest.mark.exhaustive
def test_in_a_process_of_its_own_a_bad_file_is_exit_status_1_and_named_at_the_end(
    bilm_config: Callable[[Path], Path], tmp_path: Path
) -> None:
    program = (
        "import elmo_scratch, allennlp.commands as commands\n"
        "commands.import_plugins = lambda: None\n"
        "commands.main('allennlp')\n"
    )
    words = ["train", str(bilm_config(BAD / "missing_column.csv")), "-s", str(tmp_path / "run")]
    path = os.pathsep.join([str(PROJECT_ROOT), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    errors = ended.stderr.splitlines()
    told = [line for line in errors if "missing_column.csv, line 4: expected" in line]
    assert told == errors[-1:] and told[0].startswith("allennlp train: error: ")
    assert not (tmp_path / "run").exists()


# Evaluating and predicting


@pytest.mark.parametrize("file_name, complaint", BAD_NEWS)
def test_evaluating_on_a_bad_file_is_an_error_and_older_results_stay(
    file_name: str,
    complaint: str,
    allennlp: Allennlp,
    classifier_archive: Path,
    outputs: Path,
) -> None:
    (outputs / "scores.json").write_text("old")
    with pytest.raises(ConfigurationError, match=complaint):
        allennlp(
            "evaluate",
            classifier_archive,
            BAD / file_name,
            "--output-file",
            outputs / "scores.json",
        )
    assert files_in(outputs) == ["scores.json"]
    assert (outputs / "scores.json").read_text() == "old"


@pytest.mark.parametrize("file_name, complaint", BAD_NEWS)
def test_predicting_on_a_bad_file_is_an_error(
    file_name: str, complaint: str, allennlp: Allennlp, classifier_archive: Path
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        allennlp("predict", classifier_archive, BAD / file_name, "--use-dataset-reader")


def test_predicting_on_a_bad_file_leaves_older_answers(
    allennlp: Allennlp, classifier_archive: Path, outputs: Path
) -> None:
    (outputs / "answers.jsonl").write_text("old")
    words = [classifier_archive, BAD / "bad_class.csv", "--output-file", outputs / "answers.jsonl"]
    with pytest.raises(ConfigurationError, match="bad_class.csv, line 3"):
        allennlp("predict", *words, "--use-dataset-reader", "--silent")
    assert files_in(outputs) == ["answers.jsonl"]
    assert (outputs / "answers.jsonl").read_text() == "old"


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_an_output_file_in_a_folder_that_is_none_is_an_error_that_names_it(
    command: str, allennlp: Allennlp, classifier_archive: Path, outputs: Path
) -> None:
    options = [] if command == "evaluate" else ["--use-dataset-reader", "--silent"]
    output_file = outputs / "none" / "result"
    with pytest.raises(ConfigurationError, match="outputs/none/result: No such"):
        allennlp(command, classifier_archive, DEV, "--output-file", output_file, *options)
    assert files_in(outputs) == []


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_an_archive_that_is_not_one_is_an_error_that_names_it(
    command: str, allennlp: Allennlp, outputs: Path
) -> None:
    with pytest.raises(ConfigurationError, match="not_an_archive.tar.gz: expected an archive"):
        allennlp(command, BAD / "not_an_archive.tar.gz", DEV, "--output-file", outputs / "result")
    assert files_in(outputs) == []


# Exporting


@pytest.fixture
def export(allennlp: Allennlp, bilm_archive: Path, outputs: Path) -> Callable[..., str]:
    """Runs `allennlp elmo` where it must fail, with an older output in its place; its message."""

    def run(text: Path = TOUR, archive: Path = bilm_archive) -> str:
        output = outputs / "layers.hdf5"
        output.write_bytes(b"old \x00\xff")
        with pytest.raises(SystemExit) as stop:
            allennlp("elmo", text, output, "--all", "--weight-file", archive)
        assert files_in(outputs) == ["layers.hdf5"]
        assert output.read_bytes() == b"old \x00\xff"
        assert isinstance(stop.value.code, str)  # which Python prints on stderr before status 1
        return stop.value.code

    return run


@pytest.mark.parametrize(
    "file_name, complaint",
    [
        NOT_UTF8,
        ("empty.txt", "empty.txt: expected at least one line of text, but it is empty"),
        ("blank_line.txt", "blank_line.txt, line 2: expected a sentence"),
    ],
)
def test_exporting_a_bad_file_is_one_line_and_an_older_output_keeps_its_bytes(
    file_name: str, complaint: str, export: Callable[..., str]
) -> None:
    message = export(text=BAD / file_name)
    assert message.startswith(f"allennlp elmo: error: {BAD / complaint}")
    assert "\n" not in message


def test_a_text_that_is_missing_is_the_file_that_the_error_names(
    export: Callable[..., str], tmp_path: Path
) -> None:
    message = export(text=tmp_path / "gone.txt")
    assert message == f"allennlp elmo: error: {tmp_path / 'gone.txt'}: there is no such file"


def assert_names_the_archive(message: str, archive: Path, complaint: str) -> None:
    assert message.startswith(f"allennlp elmo: error: {archive}: ")
    assert complaint in message
    assert "\n" not in message


def test_exporting_from_an_archive_that_is_not_one_is_an_error(export: Callable[..., str]) -> None:
    archive = BAD / "not_an_archive.tar.gz"
    assert_names_the_archive(export(archive=archive), archive, "can't be unpacked: not a gzip file")


@pytest.mark.parametrize("share", [0, 0.3, 0.9])
def test_exporting_from_a_part_of_an_archive_is_an_error(
    share: float, export: Callable[..., str], bilm_archive: Path, tmp_path: Path
) -> None:
    whole = bilm_archive.read_bytes()
    part = tmp_path / "part.tar.gz"
    part.write_bytes(whole[: int(share * len(whole))])
    assert_names_the_archive(export(archive=part), part, "can't be unpacked")


@pytest.mark.parametrize(
    "members, missing",
    [
        (["vocabulary", "weights.th"], "config.json"),
        (["config.json", "weights.th"], "vocabulary"),
        (["config.json", "vocabulary"], "best.th"),  # or weights.th, as it is called when packed
    ],
)
def test_exporting_from_an_archive_that_lacks_a_part_is_an_error(
    members: Sequence[str],
    missing: str,
    export: Callable[..., str],
    bilm_archive: Path,
    tmp_path: Path,
) -> None:
    unpack(bilm_archive, tmp_path / "unpacked")
    path = tmp_path / "part.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member in members:
            archive.add(tmp_path / "unpacked" / member, arcname=member)
    assert_names_the_archive(export(archive=path), path, f"it holds no {missing}")


def test_exporting_from_the_archive_of_a_task_without_a_bilm_is_an_error(
    export: Callable[..., str], classifier_archive: Path, tmp_path: Path
) -> None:
    folder = unpack(classifier_archive, tmp_path / "unpacked")
    (kept,) = folder.glob("vocabulary/.elmo_scratch_*.json")
    kept.unlink()
    complaint = "of this package's embedders of biLMs, but it holds a 'elmo_scratch_classifier'"
    assert_names_the_archive(export(archive=folder), folder, complaint)


def test_exporting_from_a_model_folder_that_is_damaged_is_an_error(
    export: Callable[..., str], bilm_archive: Path, tmp_path: Path
) -> None:
    export_model_folder(bilm_archive, tmp_path / "folder")
    weights = tmp_path / "folder" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    complaint = "expected tensors in the format of safetensors, but they can't be read"
    assert_names_the_archive(export(archive=tmp_path / "folder"), weights, complaint)


def test_an_export_that_breaks_off_half_way_leaves_the_older_output(
    allennlp: Allennlp,
    bilm_archive: Path,
    outputs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = outputs / "layers.hdf5"
    output.write_bytes(b"old")
    read, calls = SentenceLayers.read, []

    def fail_at_the_second_batch(self: SentenceLayers, batch: Any, first_row: int) -> Any:
        calls.append(batch)
        if len(calls) == 2:
            raise MemoryError
        return read(self, batch, first_row)

    monkeypatch.setattr(SentenceLayers, "read", fail_at_the_second_batch)
    words = [TOUR, output, "--all", "--weight-file", bilm_archive, "--batch-size", "5"]
    with pytest.raises(MemoryError):
        allennlp("elmo", *words, "--overwrite")
    assert len(calls) == 2
    assert files_in(outputs) == ["layers.hdf5"]
    assert output.read_bytes() == b"old"


@pytest.mark.parametrize("folder", ["none", "file"])
def test_exporting_into_a_folder_that_is_none_is_one_line_and_leaves_nothing(
    folder: str, allennlp: Allennlp, bilm_archive: Path, outputs: Path
) -> None:
    (outputs / "file").write_text("old")
    output = outputs / folder / "layers.hdf5"
    with pytest.raises(SystemExit, match=f"error: {output}: the folder .*{folder} doesn't exist"):
        allennlp("elmo", TOUR, output, "--all", "--weight-file", bilm_archive)
    assert files_in(outputs) == ["file"]
    assert (outputs / "file").read_text() == "old"
