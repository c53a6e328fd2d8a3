"""The examples for spaCy, scikit-learn and plain PyTorch are run on a biLM of an own archive."""

import re
from pathlib import Path

import pytest
import spacy

import elmo_scratch.integrations.spacy_component  # noqa: F401  (as the entry point does)
from tests import PROJECT_ROOT
from tests.examples.run_program import Ended, run_program


def run(name: str, *arguments: str) -> Ended:
    ended = run_program(PROJECT_ROOT / "examples" / name, *arguments)
    assert ended.status == 0, ended.errors
    return ended


def test_in_spacy_meanings_part_above_the_token_layer(
    bilm_archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tests share the pipelines without components, which this one adds to.
    monkeypatch.setattr(spacy, "blank", spacy.blank.__wrapped__)  # type: ignore[attr-defined]
    lines = run("in_spacy.py", str(bilm_archive)).output.splitlines()
    rows = {line.split()[0]: [float(number) for number in line.split()[1:]] for line in lines[1:4]}
    assert rows["0"] == [1.0] * 6
    # One epoch on 240 texts teaches little.
    assert min(rows["1"]) < 0.98 and min(rows["top"]) < 0.98, rows


def test_in_scikit_learn_layers_are_searched(bilm_archive: Path) -> None:
    output = run("in_scikit_learn.py", str(bilm_archive)).output
    assert len(re.findall(r"^layer (?:mix|0|top) +(?:mean|max) +0\.\d{3}$", output, re.M)) == 6
    assert re.search(r"classifies \d+\.\d% of 80 other texts correctly", output)


@pytest.mark.parametrize("options", [[], ["--frozen"]])
def test_plain_pytorch_lowers_the_loss_by_a_loop_of_its_own(
    options: list, bilm_archive: Path
) -> None:
    output = run("plain_pytorch.py", str(bilm_archive), *options).output
    losses = [float(loss) for loss in re.findall(r"loss (\d\.\d+)", output)]
    assert len(losses) == 10 and losses[-1] < 0.95 * losses[0]
    right = float(re.findall(r"(\d+\.\d)% of 80 other texts", output)[0])
    assert right > 30
