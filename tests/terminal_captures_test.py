"""`benchmarks/terminal.py`: what commands print in a terminal of 80 columns."""

from pathlib import Path

import pytest
from allennlp import commands

from benchmarks.terminal import MISTAKES, captured, document_of, prepare, rows_of


def test_rows_are_what_a_terminal_shows() -> None:
    assert rows_of("12%\r100%\r\nover\r\n") == ["100%", "over"]
    # A line that is too long stays when the next one is written over its end.
    assert rows_of(f"{'a' * 81}\r{'b' * 81}") == ["a" * 80, "b" * 80, "b"]
    assert rows_of("one\r\ntwo\x1b[A\rO") == ["One", "two"]


def test_a_command_is_captured_before_and_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "import_plugins", lambda: None)
    prepare(tmp_path)
    (command,) = [one for one in MISTAKES if one.title == "A missing variable"]
    capture = captured(command, tmp_path)
    assert "".join(capture.rows) == (
        "allennlp train: error: training_config/ag_news/elmo_trainable.jsonnet: the environment "
        "variable BILM_ARCHIVE is not set, which the config asks for; its head says what for: "
        "export BILM_ARCHIVE=..."
    )
    assert capture.before is not None and capture.before > 20
    page = "\n".join(document_of([capture]))
    assert f"| A missing variable | {capture.before} | 3 |\n" in page
    typed = "allennlp train training_config/ag_news/elmo_trainable.jsonnet -s runs/4"
    assert f"```text\n$ unset BILM_ARCHIVE; {typed}\n{capture.rows[0]}\n" in page
