import argparse
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.signals import Terminated
from elmo_scratch.search import tasks as tasks_module
from elmo_scratch.search.tasks import (
    Task,
    TrainingConfigs,
    add_jobs,
    check_settings,
    run_all,
    study_in,
)
from tests.forked import raise_signal_once, run_forked


def echoing(folder: Path, name: str, *needs: str) -> Task:
    """A task that adds its name to a file."""
    program = f"open({str(folder / 'order')!r}, 'a').write({name + ' '!r})"
    if name.startswith("bad"):
        program += "; raise SystemExit('no more')"
    command = [sys.executable, "-S", "-c", program]
    return Task(name, "", "", command, {}, folder / name, list(needs), None)


def order(folder: Path) -> List[str]:
    return (folder / "order").read_text(encoding="utf-8").split()


def test_what_others_need_comes_first(tmp_path: Path) -> None:
    chain = [("c", "b"), ("b", "a"), ("a",)]
    tasks = [echoing(tmp_path, *names) for names in chain]
    assert run_all(tasks, 2) == ([], [])
    assert order(tmp_path) == ["a", "b", "c"]


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    tasks = [echoing(tmp_path, *names) for names in [("a",), ("b", "a")]]
    run_all(tasks[:1], 1)
    run_all(tasks, 1)
    run_all(tasks, 1)
    assert order(tmp_path) == ["a", "b"]


def test_a_failure_stops_only_what_needs_it(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    names = [("bad",), ("worse", "bad"), ("worst", "worse"), ("good",)]
    tasks = [echoing(tmp_path, *name) for name in names]
    assert run_all(tasks, 1) == (["bad"], ["worse", "worst"])
    assert order(tmp_path) == ["bad", "good"]
    assert "no more" in (tmp_path / "bad" / "log.txt").read_text(encoding="utf-8")
    assert "bad failed: see" in capsys.readouterr().out
    # The next run tries it again.
    assert run_all(tasks, 1) == (["bad"], ["worse", "worst"])
    assert order(tmp_path) == ["bad", "good", "bad"]


def test_what_is_interrupted_stops_at_once_and_starts_nothing_more(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    begun = tmp_path / "first" / "begun"
    sleeping = (
        "import os, time; from pathlib import Path; "
        f"part = Path({str(begun.with_name('part'))!r}); part.write_text(str(os.getpid())); "
        f"part.rename({str(begun)!r}); time.sleep(60)"
    )
    first, second = (
        echoing(tmp_path, name)._replace(command=[sys.executable, "-S", "-c", sleeping])
        for name in ("first", "second")
    )

    def study() -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        raise_signal_once(begun.exists, signal.SIGTERM)
        run_all([first, second], 1)

    assert run_forked(study, tmp_path_factory.mktemp("log") / "errors").status == 143
    assert not (tmp_path / "second").exists()
    assert not (tmp_path / "first" / "done").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


def test_a_full_disk_ends_all_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: List[int] = []

    def full_disk(task: Any, seconds: float, pid: Optional[int] = None) -> None:
        if pid is None:
            raise OSError(28, "No space left on device")
        started.append(pid)

    monkeypatch.setattr(Task, "add_seconds", full_disk)
    command = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    tasks = [
        Task(name, "", "", command, {}, tmp_path / name, [], None) for name in ("first", "second")
    ]
    tasks.append(echoing(tmp_path, "third"))
    with pytest.raises(OSError, match="No space left"):
        run_all(tasks, 3)
    assert len(started) == 3
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_time_of_all_runs_counts(tmp_path: Path) -> None:
    task = echoing(tmp_path, "a")
    task.folder.mkdir()
    task.add_seconds(100.0)
    assert not task.is_another()
    run_all([task], 1)
    assert 100.0 < task.seconds() < 110.0


@pytest.mark.parametrize(
    "cores, jobs, expected",
    [
        (8, 2, {"a": "8", "b": "4", "c": "4"}),
        (8, 8, {"a": "8", "b": "4", "c": "4"}),
        (2, 8, {"a": "2", "b": "1", "c": "1"}),
    ],
)
def test_what_runs_together_shares_the_cores(
    cores: int,
    jobs: int,
    expected: Dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks_module, "num_processors", lambda: cores)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    program = "import os; open('{}', 'w').write(os.environ['OMP_NUM_THREADS'])"
    tasks = [
        echoing(tmp_path, *names)._replace(
            command=[sys.executable, "-S", "-c", program.format(tmp_path / f"{names[0]}.txt")]
        )
        for names in [("a",), ("b", "a"), ("c", "a")]
    ]
    assert run_all(tasks, jobs) == ([], [])
    assert {name: (tmp_path / f"{name}.txt").read_text() for name in expected} == expected


def test_the_environment_says_how_many_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    told = tmp_path / "told.txt"
    program = f"import os; open({str(told)!r}, 'w').write(os.environ['OMP_NUM_THREADS'])"
    task = echoing(tmp_path, "a")
    run_all([task._replace(command=[sys.executable, "-S", "-c", program])], 1)
    assert told.read_text() == "3"


def test_what_a_killed_study_has_left_running_is_ended(tmp_path: Path) -> None:
    task = echoing(tmp_path, "a")
    task = task._replace(command=[*task.command, str(task.folder / "run")])
    task.folder.mkdir()
    program = "import time; print(flush=True); time.sleep(99)"
    sleeping = [sys.executable, "-c", program, str(task.folder / "run")]
    left, other = (
        subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)
        for command in (sleeping, sleeping[:-1])
    )
    try:
        for process in (left, other):
            # The system knows the command line of a process a moment after it has started it.
            assert process.stdout is not None and process.stdout.readline()
        task.add_seconds(1.0, other.pid)
        task.stop_left_over()
        task.add_seconds(1.0, left.pid)
        run_all([task], 1)
        assert left.wait(10) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        left.kill()
        other.kill()
    assert task.is_done


def test_what_other_settings_have_made_ends_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    parser = argparse.ArgumentParser()
    add_jobs(parser)
    assert parser.parse_args(["--jobs", "3"]).jobs == 3
    tasks = [echoing(tmp_path, "a"), echoing(tmp_path, "b")]
    run_all(tasks[:1], 1)
    check_settings(tasks, parser)
    with pytest.raises(SystemExit) as ended:
        check_settings([task._replace(settings={"other": 1}) for task in tasks], parser)
    assert ended.value.code == 2
    told = f"{tmp_path / 'a'} holds what other settings or texts have made (1 of 2 such)"
    assert told in capsys.readouterr().err


def test_a_folder_serves_one_study_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder, parser = tmp_path / "new" / "study", argparse.ArgumentParser()
    with study_in(folder, parser):
        assert folder.is_dir()
        with pytest.raises(SystemExit) as ended, study_in(folder, parser):
            raise AssertionError("two at a time")
    assert ended.value.code == 2
    assert f"another study works in {folder}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error, status, message",
    [
        (KeyboardInterrupt(), 130, "interrupted: the same command goes on with it"),
        (Terminated(signal.SIGTERM), 143, "interrupted: the same command goes on with it"),
        (OSError(28, "full"), "[Errno 28] full: the same command goes on with it", ""),
    ],
)
def test_what_stops_a_study_ends_the_program(
    error: BaseException,
    status: Any,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    with pytest.raises(SystemExit) as ended, study_in(tmp_path, argparse.ArgumentParser()):
        raise error
    assert ended.value.code == status
    assert message in capsys.readouterr().err


CONFIG = """{
  data: std.extVar("DATA"),
  trainer: { num_epochs: 3, optimizer: { lr: 0.1, betas: [0.9, 0.99] } },
}
"""


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"trainer.num_epochs": 2.0, "trainer.optimizer.lr": 1e-05, "new": [1.0, {"a": None}]},
        {"trainer.optimizer": {"betas": [0.5, 1.0]}},
    ],
)
def test_a_config_is_the_one_that_allennlp_trains_by(overrides: Any, tmp_path: Path) -> None:
    config = tmp_path / "config.jsonnet"
    config.write_text(CONFIG)
    configs = TrainingConfigs()
    for data in ("some", "other", "some"):
        expected = Params.from_file(config, json.dumps(overrides), {"DATA": data}).as_dict()
        made = configs.changed(config, overrides, {"DATA": data})
        # As text: results of older studies are known by it.
        assert json.dumps(made) == json.dumps(expected)
        # Nobody changes that of the next training.
        made["trainer"].clear()


@pytest.mark.parametrize("text, overrides", [(CONFIG, {"trainer.no.key": 1}), ("{", {})])
def test_a_config_that_takes_no_overrides_is_an_error(
    text: str, overrides: Any, tmp_path: Path
) -> None:
    config = tmp_path / "config.jsonnet"
    config.write_text(text)
    with pytest.raises(ConfigurationError, match="config.jsonnet can't be trained with the over"):
        TrainingConfigs().changed(config, overrides, {"DATA": "some"})


class Terminal(io.StringIO):
    """Makes a file when a text is written to it."""

    def __init__(self, text: str, seen: Path) -> None:
        super().__init__()
        self._text, self._seen = text, seen

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._text in text:
            self._seen.touch()
        return super().write(text)


def test_a_line_tells_what_runs_and_its_last_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    program = (
        "import os, time\n"
        "print('epoch 1 of 9  0:00:01  loss 2', flush=True)\n"
        f"while not os.path.exists({str(seen)!r}):\n"
        "    time.sleep(0.01)"
    )
    task = echoing(tmp_path, "slow")._replace(command=[sys.executable, "-S", "-c", program])
    terminal = Terminal(", slow (epoch 1 of 9)", seen)
    monkeypatch.setattr(sys, "stderr", terminal)
    assert run_all([task], 1) == ([], [])
    assert "\r0 of 1 done, 00:0" in terminal.getvalue()
    assert "\r1 of 1 done, 00:0" in terminal.getvalue()
