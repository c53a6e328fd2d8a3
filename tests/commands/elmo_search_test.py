import json
import os
import re
import signal
from pathlib import Path
from typing import Iterator

import pytest

from elmo_scratch.search.search import TrialTraining
from tests.commands.conftest import Allennlp
from tests.search.stub_training import STUB
from tests.tiny_training import BILM_WIDTH, CONFIGS, EXT_VARS

SWEEP = """
method: grid
metric: { name: validation/accuracy, goal: maximize }
parameters:
  model.text_field_embedder.token_embedders.elmo.mix.type: { values: [trainable, none] }
"""


@pytest.mark.exhaustive
def test_it_trains_tells_and_keeps_the_best(
    allennlp: Allennlp,
    bilm_archive: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    for name, value in {**EXT_VARS, "BILM_ARCHIVE": str(bilm_archive)}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
    config = CONFIGS / "ag_news" / "elmo_frozen.jsonnet"
    overrides = {
        "model.seq2vec_encoder.embedding_dim": 100 + BILM_WIDTH,
        "trainer.num_epochs": 1,
    }
    words = ["--jobs", "2", "--overrides", json.dumps(overrides)]
    allennlp("elmo-search", "sweep.yaml", config, "-s", "found", *words)

    best = json.loads((tmp_path / "found" / "best.json").read_text(encoding="utf-8"))
    mix = "model.text_field_embedder.token_embedders.elmo.mix.type"
    assert best == {**overrides, mix: "trainable"}
    assert (tmp_path / "found" / "trial-0" / "model.tar.gz").is_file()
    head, _, first, second, *closing = capsys.readouterr().out.splitlines()
    assert head.startswith("| trial | validation/accuracy | mix.type ")
    assert first.startswith("| 0     |") and "| trainable |" in first
    assert second.startswith("| 1     |") and second.endswith("| failed |")
    assert closing[:2] == ["", "2 trainings: 1 finished, 1 failed"]
    assert re.fullmatch(r"the best is trial 0: validation/accuracy 0\.\d+", closing[2])


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is trained at once, or never if there is a file `wait`."""
    monkeypatch.setattr("elmo_scratch.search.search.ALLENNLP", STUB)
    (tmp_path / "config.json").write_text('{"x": 0.5, "epochs": 1}', encoding="utf-8")
    sweep = "{method: grid, metric: {name: validation/accuracy}, parameters: {x: {value: 0.5}}}"
    (tmp_path / "sweep.yaml").write_text(sweep, encoding="utf-8")


WORDS = ("elmo-search", "sweep.yaml", "config.json", "-s", "found")


def test_it_closes_with_what_was_reached_and_shows_the_best_trials(
    allennlp: Allennlp,
    stub: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    monkeypatch.setattr("elmo_scratch.commands.elmo_search.MOST_TRIALS", 2)
    sweep = SWEEP.partition("  model.")[0] + "  x: { values: [0.5, -1, 0.75, 0.25] }\n"
    (tmp_path / "sweep.yaml").write_text(sweep, encoding="utf-8")
    capsys.readouterr()
    allennlp(*WORDS, "--jobs", "4")
    *table, more, empty, told, best, _, model, overrides, step, report = (
        capsys.readouterr().out.splitlines()
    )
    assert [re.split(r"[ |]+", row)[2] for row in table[-2:]] == ["0.75", "0.5"]
    assert (more, empty, told) == ("and 2 more", "", "4 trainings: 3 finished, 1 failed")
    number = next(row for row in table if " 0.75 " in row).split()[1]
    assert best.startswith(f"the best is trial {number}: validation/accuracy 0.75  ")
    assert best.endswith("  over the finished ones") and "█" in best and "▁" in best
    archive = f"found/trial-{number}/model.tar.gz"
    assert (model, overrides) == (f"model        {archive}", "overrides    found/best.json")
    assert step == f"next         allennlp evaluate {archive} TEXTS"
    assert report == "             allennlp elmo-report found -o search.html"
    # And that command is one that works.
    allennlp("elmo-report", "found", "-o", "search.html")


def test_trainings_get_the_packages_that_it_was_given(
    allennlp: Allennlp, stub: None, tmp_path: Path
) -> None:
    allennlp(*WORDS, "--include-package", "elmo_scratch.search")
    seen = json.loads((tmp_path / "found" / "trial-0" / "seen.json").read_text(encoding="utf-8"))
    assert seen["words"] == ["--include-package", "elmo_scratch.search"]


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Whatever the process that runs the tests ignores."""
    usual = {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_its_trainings_too(
    number: signal.Signals,
    allennlp: Allennlp,
    stub: None,
    default_signals: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "wait").write_text("1", encoding="utf-8")
    seen = tmp_path / "found" / "trial-0" / "metrics_epoch_0.json"

    def end_when_it_trains(_: float) -> None:
        if seen.exists():
            os.kill(os.getpid(), number)

    def stop_and_send_it_again(training: TrialTraining) -> None:
        os.kill(os.getpid(), number)
        stop(training)

    stop = TrialTraining.stop
    with monkeypatch.context() as patch, pytest.raises(SystemExit, match=f"^{128 + number}$"):
        patch.setattr("elmo_scratch.search.search.time.sleep", end_when_it_trains)
        patch.setattr(TrialTraining, "stop", stop_and_send_it_again)
        allennlp(*WORDS)
    assert signal.getsignal(number) == signal.SIG_DFL
    with pytest.raises(ProcessLookupError):
        os.kill(json.loads(seen.with_name("seen.json").read_text(encoding="utf-8"))["pid"], 0)

    (tmp_path / "wait").unlink()
    allennlp(*WORDS)
    assert (tmp_path / "found" / "best.json").is_file()


def test_a_signal_that_is_ignored_stays_ignored(
    allennlp: Allennlp, stub: None, default_signals: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    seen = []
    look = "elmo_scratch.search.search.time.sleep"
    monkeypatch.setattr(look, lambda _: seen.append(signal.getsignal(signal.SIGHUP)))
    allennlp(*WORDS)
    assert set(seen) == {signal.SIG_IGN}


def test_an_error_is_one_line(allennlp: Allennlp, stub: None) -> None:
    with pytest.raises(SystemExit) as stop:
        allennlp(*WORDS, "--overrides", '{"x.y": 1}')
    assert str(stop.value.code).startswith("allennlp elmo-search: error: config.json: overrides")
    with pytest.raises(SystemExit) as stop:
        allennlp("elmo-search", "x.yaml", *WORDS[2:])
    assert str(stop.value.code).startswith("allennlp elmo-search: error: x.yaml: can't be read")


def test_where_all_fail_the_error_says_why(
    allennlp: Allennlp, stub: None, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    sweep = "{method: grid, metric: {name: validation/accuracy}, parameters: {x: {value: -1}}}"
    (tmp_path / "sweep.yaml").write_text(sweep, encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        allennlp(*WORDS)
    assert str(stop.value.code).endswith("found/trial-0.log says: x is below 0")
    assert "| failed |" in capsys.readouterr().out


def test_the_help_text_tells_where_things_are(
    allennlp: Allennlp, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit):
        allennlp("elmo-search", "--help")
    assert "FOLDER/best.json" in capsys.readouterr().out
