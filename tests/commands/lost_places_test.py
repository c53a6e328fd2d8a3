"""Commands in a working folder that was removed, and with links that lead back to themselves."""

import os
from pathlib import Path
from typing import List

import pytest

from elmo_scratch import LayerFile
from tests import FIXTURES_ROOT
from tests.commands.conftest import Allennlp

TEXT = str(FIXTURES_ROOT / "text" / "sentences.txt")
SWEEP = """
method: random
metric: {name: validation_loss, goal: minimize}
parameters: {trainer.optimizer.lr: {min: 0.1, max: 0.2}}
"""

WRITING = [
    ["elmo", TEXT, "PLACE", "--all", "--weight-file", "tiny"],
    ["elmo-export", "tiny", "PLACE"],
    ["elmo-export", "tiny", "PLACE", "--format", "safetensors"],
    ["elmo-search", "SWEEP", "config.jsonnet", "-s", "PLACE"],
    ["elmo-train", TEXT, "-s", "PLACE"],
    ["elmo-vectors", TEXT, "PLACE", "--method", "svd"],
]


@pytest.fixture(params=WRITING, ids=lambda words: " ".join((words[0], *words[-1:])))
def words(request: pytest.FixtureRequest, tmp_path: Path) -> List[str]:
    """The words of a command that writes to PLACE."""
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(SWEEP, encoding="utf-8")
    return [str(sweep) if word == "SWEEP" else word for word in request.param]


def message_of(allennlp: Allennlp, words: List[str], place: str) -> str:
    with pytest.raises(SystemExit) as stop:
        allennlp(*(place if word == "PLACE" else word for word in words))
    assert isinstance(stop.value.code, str) and "\n" not in stop.value.code
    return stop.value.code


def test_a_circle_of_links_is_one_line(
    words: List[str], allennlp: Allennlp, tmp_path: Path
) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "config.jsonnet").write_text("{}", encoding="utf-8")
    message = message_of(allennlp, words, "circle")
    assert message.startswith(f"allennlp {words[0]}: error: circle: ")
    assert sorted(os.listdir(tmp_path)) == ["circle", "config.jsonnet", "sweep.yaml"]


def test_a_working_folder_that_was_removed_is_one_line(
    words: List[str], allennlp: Allennlp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    message = message_of(allennlp, words, "out")
    assert message.endswith("the working folder has been removed; change to one that is there") or (
        message.startswith(f"allennlp {words[0]}: error: out: can't be written to (No such file")
    )


def test_an_absolute_place_needs_no_working_folder(
    allennlp: Allennlp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.txt").write_text("The river\n", encoding="utf-8")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    output = tmp_path / "out.hdf5"
    allennlp("elmo", tmp_path / "text.txt", output, "--all", "--weight-file", "tiny")
    assert len(LayerFile(output)) == 1
