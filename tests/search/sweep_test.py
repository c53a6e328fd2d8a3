from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.search.sweep import Choice, Halving, Metric, Sweep, WholeNumber, read_sweep

SWEEP = """
program: train.py
command: ["${program}"]
method: random
metric: { name: validation/loss }
parameters:
  model.layers: { min: 1, max: 3 }
  model.born: { values: [2026-01-02] }
"""


def sweep_file(folder: Path, text: str) -> Path:
    file = folder / "sweep.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_what_matters_to_a_search_is_read(tmp_path: Path) -> None:
    assert read_sweep(sweep_file(tmp_path, SWEEP)) == Sweep(
        "random",
        Metric("validation/loss", is_maximized=False),
        {"model.layers": WholeNumber(1, 3), "model.born": Choice(("2026-01-02",))},
    )


@pytest.mark.parametrize(
    ("described", "halving"),
    [
        ("min_iter: 2, eta: 4", Halving(2, 4)),
        ("max_iter: 27, s: 2", Halving(3, 3)),
        ("max_iter: 27, s: 100000000", Halving(1, 3)),
        ("max_iter: 4, s: 3, eta: 2, strict: true", Halving(1, 2)),
        ("min_iter: 2, max_iter: 27, s: 2", Halving(2, 3)),
    ],
)
def test_trainings_that_are_behind_may_be_stopped(
    described: str, halving: Halving, tmp_path: Path
) -> None:
    text = f"{SWEEP}\nrun_cap: 7\nearly_terminate: {{ type: hyperband, {described} }}"
    sweep = read_sweep(sweep_file(tmp_path, text))
    assert sweep.halving == halving
    assert sweep.run_cap == 7


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("random", "best", 'expected `method` to be one of bayes, grid, random, but got "best"'),
        ("method: random", "", "the key `method` is missing"),
        ("validation/loss", "3", "expected `name` of `metric` to be the name of a metric"),
        (
            "validation/loss",
            "validation/loss, goal: more",
            'expected `goal` of `metric` to be minimize or maximize, but got "more"',
        ),
        ("parameters:", "parameters: {}\nothers:", "expected `parameters` to be an object with"),
        ("random", "[", "expected a file in YAML, but"),
        (SWEEP, "word", "expected the file to be a JSON object, but got a string"),
        ("program:", "early_terminate: { type: none }\nprogram:", "to be hyperband, but got"),
        ("program:", "run_cap: 0\nprogram:", "expected `run_cap` to be a whole number"),
        ("program:", "2026-01-02: 1\nprogram:", "JSON can write too, but: keys must be str"),
        (SWEEP, "&a [*a]", "JSON can write too, but: Circular reference"),
        (SWEEP, "[" * 3000, "JSON can write too, but: maximum recursion depth"),
    ],
)
def test_what_makes_no_sense_is_an_error(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in SWEEP
    with pytest.raises(ConfigurationError, match=message):
        read_sweep(sweep_file(tmp_path, SWEEP.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("program:", "run_kap: 3\nprogram:", "the key `run_kap` is unknown; .*'run_cap'"),
        ("loss", "loss, gaol: maximize", "the key `gaol` of `metric` is unknown; .*'goal'"),
        (
            "program:",
            "early_terminate: { type: hyperband, min_iter: 1, ete: 2 }\nprogram:",
            "the key `ete` of `early_terminate` is unknown; .*'eta'",
        ),
    ],
)
def test_a_slip_in_a_key_is_an_error(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_sweep(sweep_file(tmp_path, SWEEP.replace(old, new)))


def test_what_only_weights_and_biases_needs_is_passed_over(tmp_path: Path) -> None:
    plain = read_sweep(sweep_file(tmp_path, SWEEP))
    text = SWEEP.replace("loss", "loss, target: 0.1, impute: worst, impute_while_running: 'false'")
    text += "project: mine\nentity: me\ncontroller: { type: local }\nkind: sweep\n"
    assert read_sweep(sweep_file(tmp_path, text)) == plain


def test_a_grid_needs_an_end(tmp_path: Path) -> None:
    text = SWEEP.replace("random", "grid").replace("min: 1", "min: 1.5")
    with pytest.raises(ConfigurationError, match="`model.layers` has no end of values"):
        read_sweep(sweep_file(tmp_path, text))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="missing.yaml: can't be read"):
        read_sweep(tmp_path / "missing.yaml")
