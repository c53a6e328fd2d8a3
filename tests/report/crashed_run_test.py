"""Reports of trainings that didn't come to their end: real ones, killed and failed."""

import json
import os
import shlex
import signal
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from allennlp.commands.train import train_model_from_file
from allennlp.common.checks import ConfigurationError

from elmo_scratch.report import Contents, State, read_run, report_of, write_page
from elmo_scratch.report.document import Paragraph, Table
from tests.commands.conftest import allennlp as allennlp
from tests.forked import run_forked
from tests.report.overview_test import texts
from tests.report.run_folders import write_lock, write_run
from tests.training.tiny_runs import Interrupt, tiny_config


def ending(act: Callable[[], None]) -> Any:
    """A callback's method that ends the training in the third batch of the second epoch."""

    def on_batch(
        self: Any,
        trainer: Any,
        inputs: Any,
        outputs: Any,
        metrics: Any,
        epoch: int,
        batch: int,
        is_training: bool,
        **_: Any,
    ) -> None:
        if (epoch, batch, is_training) == (1, 3, True):
            act()

    return on_batch


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(tiny_config()), encoding="utf-8")
    return tmp_path / "config.json"


def told(folder: Path) -> Dict[str, str]:
    """The facts of a training's report, with its first sentences by the name `""`."""
    (section,) = report_of(Contents([read_run(folder)])).sections
    condition, facts = section.blocks[:2]
    assert isinstance(condition, Paragraph) and isinstance(facts, Table)
    return {"": condition.text, **dict(texts(facts))}


def test_a_killed_training_tells_what_is_kept_and_goes_on_by_what_it_says(
    config: Path, tmp_path: Path, allennlp: Callable[..., None]
) -> None:
    folder = tmp_path / "my run"

    def train_until_killed() -> None:
        kill = ending(lambda: os.kill(os.getpid(), signal.SIGKILL))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Interrupt, "on_batch", kill)
            train_model_from_file(str(config), str(folder))

    assert run_forked(train_until_killed, tmp_path / "errors").status == -signal.SIGKILL
    facts = told(folder)
    assert facts["state"] == "stopped before its end"
    assert facts[""].startswith("This training stopped before its end, and its log says nothing")
    assert "Its last checkpoint holds 1 epoch and 2 batches." in facts[""]
    assert facts["epochs"].startswith("1 of 3")
    page = tmp_path / "report.html"
    write_page(report_of(Contents([read_run(folder)])), page)
    assert "perplexity_right_to_left" in page.read_text("utf-8")

    words = shlex.split(facts["goes on by"])[1:]
    assert run_forked(lambda: allennlp(*words), tmp_path / "errors").status == 0
    run = read_run(folder)
    assert (run.state, len(run.epochs)) == (State.FINISHED, 3)


def test_a_training_that_an_error_ended_tells_the_error(
    config: Path,
    tmp_path: Path,
    allennlp: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise ConfigurationError("the data is gone:\nline 7")

    monkeypatch.setattr(Interrupt, "on_batch", ending(fail))
    ended = run_forked(lambda: allennlp("train", config, "-s", "run"), tmp_path / "errors")
    assert ended.status == 1
    assert ended.errors.endswith("allennlp train: error: the data is gone: line 7\n")
    facts = told(tmp_path / "run")
    error = "allennlp.common.checks.ConfigurationError: the data is gone:"
    assert facts["state"] == f"ended by an error ({error})"
    assert facts[""].startswith("An error ended this training; the end of its log says where.")
    assert facts["goes on by"].endswith(" --recover")


@pytest.mark.parametrize(
    "is_ours, words",
    [
        (True, "This training stopped before its end, and its log says nothing of it: "),
        (False, "This training is not finished, and may still run elsewhere. There is no check"),
    ],
)
def test_without_a_checkpoint_it_begins_anew(is_ours: bool, words: str, tmp_path: Path) -> None:
    write_run(tmp_path, [], is_over=False)
    if is_ours:
        write_lock(tmp_path)
    facts = told(tmp_path)
    assert facts[""].startswith(words)
    assert "There is no checkpoint to go on from." in facts[""]
    command = f"allennlp train {tmp_path}/config.json -s {tmp_path} --force"
    assert facts["begins anew by"] == command


def test_the_log_of_the_first_of_several_processes_counts_too(tmp_path: Path) -> None:
    lines: List[str] = ["- CRITICAL - root - Uncaught exception", "ValueError: the loss is NaN"]
    write_run(tmp_path, is_over=False)
    log = f"2026-11-28 12:00:00,123 {lines[0]}\nTraceback (most recent call last):\n{lines[1]}\n"
    (tmp_path / "out_worker0.log").write_text(log, encoding="utf-8")
    assert read_run(tmp_path).reason == lines[1]
