import json
from pathlib import Path

import pytest

from tests.examples.run_program import run_program
from tests.examples.task_gains import SMALL, STUDY


@pytest.mark.exhaustive
@pytest.mark.usefixtures("forked_commands")
def test_it_runs_from_the_text_to_the_table(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    words = [str(data), "--seeds", "1", "--bilm", json.dumps(SMALL)]
    words += [
        "--overrides",
        '{"trainer.num_epochs": 1}',
        "--only",
        "entities, 1%: (none|input and|the biLM)",
    ]
    done = run_program(STUDY, *words, "--folder", str(folder))
    assert done.status == 0, done.errors
    scores = json.loads((folder / "gains.json").read_text())
    forms = ["none", "input and output", "the biLM fine-tuned on the task's text"]
    assert [one["form"] for one in scores] == forms
    assert (folder / "gains.md").read_text() in done.output
    # Elsewhere none of them is trained again, nor the biLMs.
    known = ["--results", str(folder / "gains.json")]
    done = run_program(STUDY, *words, "--folder", str(tmp_path / "elsewhere"), *known)
    assert done.status == 0, done.errors
    assert json.loads((tmp_path / "elsewhere" / "gains.json").read_text()) == scores
    assert not (tmp_path / "elsewhere" / "biLM").exists()
    # With other settings the folder is not touched.
    other = words + ["--overrides", '{"trainer.num_epochs": 2}', "--folder", str(folder)]
    done = run_program(STUDY, *other)
    assert done.status == 2 and "holds what other settings or texts have made" in done.errors
