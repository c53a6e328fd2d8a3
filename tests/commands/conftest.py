"""The command line, within the tests' own process."""

import sys
from pathlib import Path
from typing import Callable, Union

import pytest
from allennlp import commands

Allennlp = Callable[..., None]


@pytest.fixture
def allennlp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Allennlp:
    """Runs `allennlp` with these words on its command line, in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    # Other plugins have nothing to add, and importing them takes long.
    monkeypatch.setattr(commands, "import_plugins", lambda: None)

    def run(*words: Union[str, Path]) -> None:
        monkeypatch.setattr(sys, "argv", ["allennlp", *map(str, words)])
        commands.main("allennlp")

    return run
