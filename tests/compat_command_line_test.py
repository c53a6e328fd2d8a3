import multiprocessing
import subprocess
import sys
import time
from pathlib import Path
from typing import List, Optional

import pytest

from elmo_scratch_compat.command_line import LOADING, begin_command, typed_words

WORDS = ["elmo", "in.txt", "out.hdf5", "--all"]


@pytest.mark.parametrize(
    "arguments, original, words",
    [
        (["/usr/bin/allennlp", *WORDS], ["python", "/usr/bin/allennlp", *WORDS], WORDS),
        (["-m", *WORDS], ["python", "-X", "dev", "-m", "allennlp", *WORDS], WORDS),
        (["-m", *WORDS], ["python", "-m", "pytest", *WORDS], None),
        (["-c"], ["python", "-c", "import torch"], None),
        (["allennlp.py", *WORDS], ["python", "allennlp.py", *WORDS], None),
        ([], ["python"], None),
    ],
)
def test_it_knows_the_program(
    arguments: List[str],
    original: List[str],
    words: Optional[List[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(sys, "orig_argv", original)
    assert typed_words() == words
    # Workers have the arguments of the program that started them.
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: object())
    assert typed_words() is None


def test_in_a_terminal_lines_say_what_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(sys, "argv", ["allennlp", *WORDS])
    begin_command()
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    begin_command()
    assert capsys.readouterr() == ("", "loading AllenNLP …\n")
    for clock[0] in (1.9, 2.1, 4.0, 4.2):
        LOADING.go_on("spacy.tokens")
    assert capsys.readouterr().err == 2 * "loading AllenNLP: spacy …\n"
    LOADING.end()
    clock[0] = 9.0
    LOADING.go_on("spacy.tokens")
    assert capsys.readouterr().err == ""


def test_help_and_mistakes_do_not_wait_for_allennlp() -> None:
    program = str(Path(sys.executable).parent / "allennlp")
    command = [sys.executable, "-X", "importtime", program, "elmo", "in.txt", "out.hdf5"]
    done = subprocess.run(command, capture_output=True, text=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 2
    assert "one of the arguments --all --top --average is required" in done.stderr
    assert "torch" in imported and not imported & {"spacy", "allennlp.commands", "sklearn"}
