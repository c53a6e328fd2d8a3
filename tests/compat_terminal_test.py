"""What quiet commands print, and what their log files get."""

import logging
import sys
from pathlib import Path

import pytest
from allennlp.common import logging as common_logging
from allennlp.common import tqdm as common_tqdm

from elmo_scratch_compat import terminal
from elmo_scratch_compat.terminal import epoch_line, fitted, quiet_terminal, tell

LONG = "perplexity: 18923.3878, perplexity_left_to_right: 20659.6015, batch_loss: 9.8482 ||:   "
BAR = "0%|          | 1/876 [00:00<13:31,  1.08it/s]"


def test_a_line_of_progress_keeps_as_many_metrics_as_fit() -> None:
    assert fitted(f"\r{LONG}{BAR}", 79) == f"\rperplexity: 18923.3878  {BAR}".ljust(80)
    assert fitted(f"\r{LONG}{BAR}", 60) == f"\r{BAR}".ljust(61)
    assert len(fitted(f"\r{LONG}{BAR}", 20)) == 21
    assert fitted(f"{LONG}{BAR}\n", 60) == f"{BAR}\n"
    assert fitted("\r 50%|#####     | 2/4", 79) == "\r 50%|#####     | 2/4"


def test_a_quiet_command_prints_warnings_and_what_it_does_and_logs_all(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with quiet_terminal():
        common_logging.prepare_global_logging(str(tmp_path))
        logging.getLogger("allennlp.data.vocabulary").info("Fitting token dictionary")
        logging.getLogger("elmo_scratch.data").info("Corpus in /x: 7 tokens")
        archival = logging.getLogger("allennlp.models.archival")
        archival.info("archiving weights and vocabulary to %s", "/tmp/x.1.part")
        logging.getLogger("somewhere").warning("the disk is nearly full")
        logging.getLogger("somewhere").error("it is full")
        tell("epoch 1 of 3")
    printed = capsys.readouterr()
    assert printed.out == "packing the archive\nwarning: the disk is nearly full\nepoch 1 of 3\n"
    assert printed.err == "error: it is full\n"
    logged = (tmp_path / "out.log").read_text()
    for line in ("Fitting token dictionary", "Corpus in /x", "/tmp/x.1.part", "epoch 1 of 3"):
        assert line in logged


def test_other_commands_print_what_they_did(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    common_logging.prepare_global_logging(str(tmp_path))
    logging.getLogger("allennlp.data.vocabulary").info("Fitting token dictionary")
    tell("epoch 1 of 3")
    assert capsys.readouterr().out.endswith("allennlp.data.vocabulary - Fitting token dictionary\n")


def test_a_file_gets_few_lines_of_progress_and_the_last_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LINES", 1000.0)
    stream = common_tqdm.TqdmToLogsWriter()
    with quiet_terminal():
        monkeypatch.setattr(common_tqdm.sys.stderr, "_last_line", float("-inf"))
        for message in (f"\r{LONG}{BAR}", f"\r{LONG} 50%|#####  | 2/4", "\n", "\r100%|##| 4/4 "):
            stream.write(message)
    printed = capsys.readouterr().err.splitlines()
    assert printed == [f"perplexity: 18923.3878  {BAR}", "100%|##| 4/4"]
    stream.write(f"\r{LONG}{BAR}")
    assert capsys.readouterr().err == f"\r{LONG}{BAR}"


def test_a_terminal_gets_lines_of_its_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with quiet_terminal():
        common_tqdm.TqdmToLogsWriter().write(f"\r{LONG}{BAR}")
    assert len(capsys.readouterr().err) == 60


def test_a_message_begins_below_the_line_of_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    stream = common_tqdm.TqdmToLogsWriter()
    with quiet_terminal():
        common_logging.prepare_global_logging(str(tmp_path))
        stream.write(f"\r{BAR}")
        tell("about 3 minutes to go")
        tell("nothing else is open")
        stream.write("\r100%|##| 4/4")
        stream.write("\n")
        tell("epoch 1 of 3")
    told = "\nabout 3 minutes to go\nnothing else is open\nepoch 1 of 3\n"
    assert capsys.readouterr().out == told


def test_workers_beside_the_first_show_no_progress(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with quiet_terminal():
        common_logging.prepare_global_logging(str(tmp_path), rank=1, world_size=2)
        common_tqdm.TqdmToLogsWriter().write("\r100%|##########| 7/7 [00:00]")
        logging.getLogger("allennlp").warning("Worker 1 completed its entire epoch (training).")
    assert capsys.readouterr().err == ""
    assert "Worker 1" in (tmp_path / "out_worker1.log").read_text()
    common_tqdm.TqdmToLogsWriter().write("\r100%|##########| 7/7 [00:00]")
    assert "7/7" in capsys.readouterr().err


def test_an_epoch_is_one_line() -> None:
    metrics = {
        "training_duration": "0:01:20.123456",
        "training_loss": 5.25,
        "validation_loss": 5.5,
        "validation_perplexity": 244.69,
    }
    line = epoch_line(metrics, ["perplexity"], 1, 6)
    assert line == "epoch 2 of 6  0:01:20  loss 5.25 / 5.5, perplexity - / 244.7"
