import json
import logging
import os
from argparse import Namespace
from pathlib import Path
from typing import Any, Dict, List

import pytest
import torch
from allennlp.commands.subcommand import Subcommand
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import SigTermReceived
from allennlp.predictors import Predictor
from allennlp.training.util import create_serialization_dir
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException

from elmo_scratch.commands.command_error import OURS, _use, mistake_of, run_plainly
from elmo_scratch_compat.terminal import is_quiet
from elmo_scratch_compat.training import FOLDER_CAME_BACK
from tests import FIXTURES_ROOT
from tests.commands.conftest import Allennlp
from tests.exports_test import REGISTERED
from tests.tiny_training import CONFIGS, params_on_fixtures

DEV = FIXTURES_ROOT / "news" / "dev.csv"


@pytest.fixture
def arguments(tmp_path: Path) -> Namespace:
    """The arguments of a training whose config names a model of the package."""
    config = tmp_path / "config.json"
    config.write_text('{"model": {"type": "elmo_scratch_bilm"}, "trainer": {}}')
    folder = tmp_path / "my run"
    folder.mkdir()
    return Namespace(
        param_path=str(config),
        serialization_dir=str(folder),
        overrides="",
        include_package=[],
        dry_run=False,
        verbose=False,
        debug=False,
        node_rank=0,
    )


def raising(error: BaseException) -> Any:
    def run(args: Namespace) -> None:
        raise error

    return run


# Mistakes


@pytest.mark.parametrize(
    "error, told",
    [
        (ConfigurationError("a.csv, line 1:\n expected"), "a.csv, line 1: expected"),
        (FileNotFoundError("file a.jsonnet not found"), "a.jsonnet: there is no such file"),
        (FileNotFoundError(2, "No such file", "a.csv"), "a.csv: No such file$"),
        (
            RuntimeError("RUNTIME ERROR: undefined external variable: BILM_ARCHIVE\n\tc:(1:2)"),
            "the environment variable BILM_ARCHIVE is not set, .*: export BILM_ARCHIVE=",
        ),
        (RuntimeError("STATIC ERROR: c.jsonnet:2:5: unexpected"), "Jsonnet, but c.jsonnet:2:5"),
        (RuntimeError("STATIC ERROR: 1:24: unexpected"), r"--overrides: expected JSON, but .*1:24"),
        (ValueError("overrides: a.b can't be set"), "overrides: a.b can't be set$"),
        (RuntimeError("mat1 and mat2."), "mat1 and mat2; --debug shows where$"),
        (TypeError("Expected num_epochs to be a int."), "config.json: expected num_epochs to be"),
        (NotImplementedError(), "config.json: expected a model that answers JSON lines"),
        (
            ConfigurationError("blm not in acceptable choices for model.type: ['x', 'bilm']. You"),
            "model.type: there is no 'blm'. Did you mean 'bilm'?",
        ),
        (
            ConfigurationError("a.tar.gz: x not in acceptable choices for b.type: ['y', 'z']. You"),
            "a.tar.gz: b.type: there is no 'x'. Expected one of y, z. .* --include-package PACKAGE",
        ),
    ],
)
def test_a_mistake_is_one_line(error: Exception, told: str, arguments: Namespace) -> None:
    with pytest.raises(ConfigurationError, match=f"^allennlp train: error: .*{told}") as stop:
        run_plainly("train", raising(error), arguments)
    assert "\n" not in str(stop.value)


@pytest.mark.parametrize(
    "files, told",
    [
        (["config.json"], "holds no checkpoint. Begin anew by --force"),
        (["training_state_e1_b0.th"], "after 1 epoch. Go on with it by --recover"),
        (["training_state_e1_b0.th", "model.tar.gz"], "finished training .* Replace it by --force"),
    ],
)
def test_a_folder_in_use_says_how_to_go_on_there(
    files: List[str], told: str, arguments: Namespace
) -> None:
    folder = Path(arguments.serialization_dir)
    for name in files:
        (folder / name).touch()
    with pytest.raises(ConfigurationError, match=f"^allennlp train: error: {folder}: .*{told}, or"):
        run_plainly(
            "train",
            lambda args: create_serialization_dir(Params({}), folder, False, False),
            arguments,
        )


@pytest.mark.parametrize(
    "also, is_left",
    [([], False), (["out_worker1.log"], False), (["environment.json"], True), (["my.txt"], True)],
)
def test_a_refused_training_leaves_no_folder_that_is_in_the_way(
    also: List[str], is_left: bool, arguments: Namespace
) -> None:
    folder = Path(arguments.serialization_dir)
    folder.rmdir()

    def run(args: Namespace) -> None:
        create_serialization_dir(Params({}), folder, False, False)
        (folder / "vocabulary").mkdir()
        for name in ["config.json", "meta.json", "out.log", *also]:
            (folder / name).touch()
        raise ConfigurationError("no such setting")

    with pytest.raises(ConfigurationError, match="no such setting"):
        run_plainly("train", run, arguments)
    assert folder.exists() == is_left


def test_a_folder_that_was_empty_is_empty_again(arguments: Namespace) -> None:
    folder = Path(arguments.serialization_dir)

    def run(args: Namespace) -> None:
        create_serialization_dir(Params({}), folder, False, False)
        (folder / "config.json").touch()
        raise ConfigurationError("no such setting")

    with pytest.raises(ConfigurationError, match="no such setting"):
        run_plainly("train", run, arguments)
    assert list(folder.iterdir()) == []


def test_a_training_that_breaks_in_an_epoch_keeps_its_folder(arguments: Namespace) -> None:
    folder = Path(arguments.serialization_dir)

    def _train_epoch() -> None:
        raise RuntimeError("out of memory")

    def run(args: Namespace) -> None:
        (folder / "out.log").touch()
        _train_epoch()

    with pytest.raises(ConfigurationError, match="out of memory"):
        run_plainly("train", run, arguments)
    assert (folder / "out.log").exists()


def test_a_folder_that_another_training_takes_meanwhile_is_not_touched(
    arguments: Namespace,
) -> None:
    folder = Path(arguments.serialization_dir)

    def run(args: Namespace) -> None:
        (folder / "config.json").touch()
        create_serialization_dir(Params({}), folder, False, False)

    with pytest.raises(ConfigurationError, match="holds no checkpoint"):
        run_plainly("train", run, arguments)
    assert (folder / "config.json").exists()


@pytest.mark.parametrize(
    "reader, words",
    [
        ("elmo_scratch_sentences", ""),
        ({"type": "elmo_scratch_sentences"}, ""),
        ({"type": "elmo_scratch_sentences", "tokenizer": None}, ""),
        ({"type": "elmo_scratch_sentences", "tokenizer": "whitespace"}, ""),
        ({"type": "elmo_scratch_sentences", "tokenizer": "spacy_blank"}, " --tokenize en"),
        (
            {"type": "x", "tokenizer": {"type": "spacy_blank", "language": "hi"}},
            " --tokenize hi",
        ),
        ({"type": "x", "tokenizer": {"type": "spacy_blank", "end_tokens": ["."]}}, ""),
    ],
)
def test_the_next_command_cuts_texts_as_the_training_did(reader: Any, words: str) -> None:
    config = {"model": {"type": "elmo_scratch_bilm"}, "dataset_reader": reader}
    line = _use("evaluate", Path("model.tar.gz"), config)
    assert line == f"allennlp elmo TEXT layers.hdf5 --all --weight-file model.tar.gz{words}"


def test_a_refused_training_leaves_a_folder_that_was_there(arguments: Namespace) -> None:
    log = Path(arguments.serialization_dir) / "out.log"
    log.touch()
    with pytest.raises(ConfigurationError, match="no such setting"):
        run_plainly("train", raising(ConfigurationError("no such setting")), arguments)
    assert log.exists()


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Cannot access accelerator device when none is available."),
        ConfigurationError("Experiment specified a GPU but none is available;"),
    ],
)
def test_a_gpu_that_is_not_there_is_told_with_the_setting(
    error: Exception, arguments: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    told = mistake_of(error, arguments)
    assert told is not None and "`trainer.cuda_device`" in told and "PyTorch sees none" in told
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert mistake_of(error, arguments) != told


def raised_by_a_process(text: str) -> ProcessRaisedException:
    """What a process of a training has raised, as PyTorch tells it to the one that started it."""
    begin = "-- Process 1 terminated with the following error:\nTraceback (most recent call last):"
    place = '  File "a.py", line 1, in f\n    f()'
    return ProcessRaisedException(f"\n\n{begin}\n{place}\n{text}\n", 1, 9)


LOST = "another process of the training, perhaps on another machine, was lost after 2 epochs"


@pytest.mark.parametrize(
    "error, told",
    [
        (
            ProcessExitedException("", 1, 9, -9, "SIGKILL"),
            "process 1 of the training was killed by SIGKILL after 2 epochs, which is kept",
        ),
        (
            ProcessExitedException("", 0, 9, 1),
            "process 0 of the training ended with status 1 after 2",
        ),
        (
            raised_by_a_process("RuntimeError: [gloo/pair.cc:5] Read error: Connection\nreset"),
            LOST,
        ),
        (
            raised_by_a_process("torch.distributed.DistBackendError: it has exited"),
            LOST,
        ),
        (
            raised_by_a_process("torch.distributed.DistNetworkError: EADDRINUSE: port in use."),
            "EADDRINUSE: port in use; --debug shows where$",
        ),
        (
            raised_by_a_process("allennlp.common.checks.ConfigurationError: a.b: no\n  such c"),
            "a.b: no such c$",
        ),
        (
            raised_by_a_process("RuntimeError: mat1 and mat2."),
            "mat1 and mat2; --debug shows where$",
        ),
    ],
)
def test_what_ends_one_of_several_processes_is_told(
    error: Exception, told: str, arguments: Namespace
) -> None:
    arguments.node_rank = 1
    (Path(arguments.serialization_dir) / "training_state_e2_b0.th").touch()
    with pytest.raises(ConfigurationError, match=f"^allennlp train: error: {told}") as stop:
        run_plainly("train", raising(error), arguments)
    if "epochs" in told:
        assert str(stop.value).endswith(" --node-rank 1 --recover")


@pytest.mark.parametrize("text", ["KeyError: 'gloo'", "SystemError"])
def test_a_mistake_of_the_program_in_a_process_keeps_its_traceback(
    text: str, arguments: Namespace
) -> None:
    assert mistake_of(raised_by_a_process(text), arguments) is None


def test_a_mistake_of_the_program_keeps_its_traceback(arguments: Namespace) -> None:
    assert mistake_of(KeyError("x"), arguments) is None
    with pytest.raises(TypeError, match="unhashable"):
        run_plainly("train", raising(TypeError("unhashable")), arguments)


def test_with_debug_an_error_is_what_it_was(arguments: Namespace) -> None:
    arguments.debug = True
    with pytest.raises(RuntimeError, match="^mat1$"):
        run_plainly("train", raising(RuntimeError("mat1")), arguments)


def test_the_log_file_gets_the_traceback(arguments: Namespace, tmp_path: Path) -> None:
    handler = logging.FileHandler(tmp_path / "out.log")
    logging.getLogger().addHandler(handler)
    (Path(arguments.serialization_dir) / "metrics_epoch_0.json").touch()
    with pytest.raises(ConfigurationError):
        run_plainly("train", raising(RuntimeError("mat1")), arguments)
    handler.close()
    logged = (tmp_path / "out.log").read_text()
    assert "Traceback (most recent call last)" in logged
    assert "RuntimeError: mat1" in logged


# Interruptions


@pytest.mark.parametrize("error, status", [(KeyboardInterrupt(), 130), (SigTermReceived(), 143)])
@pytest.mark.parametrize(
    "files, told",
    [
        ([], "interrupted before the first checkpoint: nothing is kept. Begin anew with:"),
        (
            ["training_state_e1_b0.th", "training_state_e1_b500.th", "training_state_e0_b900.th"],
            "interrupted after 1 epoch and 500 batches, which is kept. Go on with:",
        ),
        (["training_state_e10_b0.th"], "interrupted after 10 epochs, which is kept. Go on with:"),
    ],
)
def test_an_interrupted_training_says_what_is_kept_and_how_to_go_on(
    files: List[str],
    told: str,
    error: BaseException,
    status: int,
    arguments: Namespace,
    capsys: pytest.CaptureFixture,
) -> None:
    for name in files:
        (Path(arguments.serialization_dir) / name).touch()
    arguments.overrides = '{"trainer.num_epochs": 3}'
    with pytest.raises(SystemExit) as stop:
        run_plainly("train", raising(error), arguments)
    assert stop.value.code == status
    line, command = capsys.readouterr().err.splitlines()
    assert line == f"allennlp train: {told}"
    option = "--recover" if files else "--force"
    assert (
        command.split()
        == (
            f"allennlp train {arguments.param_path} -s '{arguments.serialization_dir}' -o "
            f"'{arguments.overrides}' {option}"
        ).split()
    )


def test_an_interruption_before_a_folder_was_replaced_says_so(
    arguments: Namespace, capsys: pytest.CaptureFixture
) -> None:
    error = KeyboardInterrupt()
    setattr(error, FOLDER_CAME_BACK, True)
    with pytest.raises(SystemExit):
        run_plainly("train", raising(error), arguments)
    folder = arguments.serialization_dir
    assert capsys.readouterr().err == (
        f"allennlp train: interrupted before it replaced {folder}, which is as it was\n"
    )


def test_a_mistake_costs_no_finished_training(
    allennlp: Allennlp, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    finished = tmp_path / "run" / "model.tar.gz"
    finished.parent.mkdir()
    finished.touch()
    config = tmp_path / "config.json"
    params_on_fixtures(CONFIGS / "bilm" / "fixture.jsonnet").to_file(str(config))
    mistake = '{"trainer.num_epoch": 1}'
    with pytest.raises(ConfigurationError, match=r"trainer\.num_epoch"):
        allennlp("train", config, "-s", "run", "-o", mistake, "--force")
    assert list(tmp_path.rglob("*.tar.gz")) == [finished]
    assert os.listdir(finished.parent) == [finished.name]
    assert "run is as it was" in capsys.readouterr().out


# What a run prints


def test_a_training_and_an_evaluation_close_with_what_was_reached(
    allennlp: Allennlp, tmp_path: Path, bilm_archive: Path, capsys: pytest.CaptureFixture
) -> None:
    config = tmp_path / "config.json"
    classifier = CONFIGS / "ag_news" / "elmo_trainable.jsonnet"
    params_on_fixtures(classifier, bilm_archive).to_file(str(config))
    capsys.readouterr()
    allennlp("train", config, "-s", "run", "-o", '{"trainer.num_epochs": 2}')
    printed = capsys.readouterr().out.splitlines()
    assert all(len(line) < 80 for line in printed)
    assert [line[:12] for line in printed[:4]] == [
        "weights to t",
        "epoch 1 of 2",
        "epoch 2 of 2",
        "packing the ",
    ]
    assert "On the validation data, after epoch " in printed[5]
    assert printed[6].startswith("  accuracy ") and printed[6].endswith("over 2 epochs")
    assert {line.split()[0] for line in printed[9:13]} == {
        "World",
        "Sports",
        "Business",
        "Sci/Tech",
    }
    assert printed[-5:] == [
        "model        run/model.tar.gz",
        "all metrics  run/metrics.json",
        "whole log    run/out.log",
        "next         allennlp evaluate run/model.tar.gz TEXTS",
        "             allennlp predict run/model.tar.gz TEXTS.jsonl",
    ]
    assert "Batch inputs" in (tmp_path / "run" / "out.log").read_text()

    allennlp("evaluate", "run/model.tar.gz", DEV)
    evaluated = capsys.readouterr().out.splitlines()
    table = evaluated.index(f"On {DEV}:") + 2
    # The best epoch's model, on the same data.
    assert evaluated[table : table + 7] == printed[7:14]


def test_a_language_model_closes_with_its_export(
    allennlp: Allennlp, bilm_archive: Path, capsys: pytest.CaptureFixture
) -> None:
    allennlp("evaluate", bilm_archive, DEV)
    printed = capsys.readouterr().out.splitlines()
    assert printed[2].startswith("  perplexity ")
    wanted = f"allennlp elmo TEXT layers.hdf5 --all --weight-file {bilm_archive} --tokenize en"
    assert printed[-1] == f"next         {wanted}"


def test_a_bad_line_of_json_is_named(
    allennlp: Allennlp, classifier_archive: Path, tmp_path: Path
) -> None:
    (tmp_path / "texts.jsonl").write_text('{"description": "The match ."}\n{"description": \n')
    with pytest.raises(
        ConfigurationError, match="texts.jsonl, line 2: .* got '{\"description\":' "
    ):
        allennlp("predict", classifier_archive, "texts.jsonl")


NAMES_OURS = [
    {"model": {"type": "elmo_scratch_classifier"}},
    {"model": {"text_field_embedder": {"elmo": {"type": "elmo_scratch_from_official"}}}},
    *({"dataset_reader": name} for name in ("ag_news", "ud_pos")),
    {"dataset_reader": {"tokenizer": {"type": "spacy_blank"}}},
]
NAMES_NOTHING_OF_OURS = [
    {"model": {"type": "simple_tagger"}},
    {"train_data_path": "data/ag_news", "dataset_reader": {"type": "ag_news_of_others"}},
]


def is_quiet_for(command: str, args: Namespace) -> bool:
    found: List[bool] = []

    def run(_: Namespace) -> None:
        found.append(is_quiet())
        raise KeyError  # so that nothing closes

    with pytest.raises(KeyError):
        run_plainly(command, run, args)
    return found == [True]


@pytest.mark.parametrize("config", NAMES_OURS + NAMES_NOTHING_OF_OURS)
def test_a_run_is_quiet_where_its_config_names_a_part_of_the_package(
    config: Dict[str, Any], arguments: Namespace
) -> None:
    arguments.debug = True
    Path(arguments.param_path).write_text(json.dumps(config))
    assert is_quiet_for("train", arguments) is (config in NAMES_OURS)
    arguments.verbose = True
    assert not is_quiet_for("train", arguments)


def test_all_names_in_configs_are_known_as_names_of_the_package() -> None:
    for registry, names in REGISTERED.items():
        if registry.__module__.startswith("allennlp.") and registry not in (Predictor, Subcommand):
            assert all(OURS.search(json.dumps({"type": name})) for name in names)


def test_an_override_makes_a_run_of_an_old_archive_quiet(
    arguments: Namespace, tmp_path: Path
) -> None:
    arguments.debug = True
    archive = tmp_path / "old"
    archive.mkdir()
    (archive / "config.json").write_text('{"model": {"elmo": {"type": "elmo_token_embedder"}}}')
    arguments.archive_file = str(archive)
    assert not is_quiet_for("evaluate", arguments)
    arguments.overrides = '{"model.elmo.type": "elmo_scratch_from_official"}'
    assert is_quiet_for("evaluate", arguments)


def test_the_next_command_takes_the_packages_of_this_one(
    arguments: Namespace, bilm_archive: Path, capsys: pytest.CaptureFixture
) -> None:
    arguments.archive_file, arguments.include_package = str(bilm_archive), ["my_mixes"]
    arguments.input_file, arguments.output_file = "dev.txt", None
    run_plainly("evaluate", lambda args: {"perplexity": 7.0}, arguments)
    step = capsys.readouterr().out.splitlines()[-1]
    assert step.endswith(f"{bilm_archive} --tokenize en --include-package my_mixes")


def test_other_trainings_print_what_they_did(
    arguments: Namespace, capsys: pytest.CaptureFixture
) -> None:
    Path(arguments.param_path).write_text(json.dumps({"model": {"type": "simple_tagger"}}))
    assert run_plainly("train", lambda args: "model", arguments) == "model"
    assert capsys.readouterr().out == ""
