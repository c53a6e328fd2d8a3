from pathlib import Path
from types import ModuleType
from typing import Any, Dict

import pytest
from allennlp.common.checks import ConfigurationError


@pytest.fixture
def gains(modules: Dict[str, ModuleType]) -> Any:
    return modules["gains"]


def score(gains: Any, form: str, seed: int, best: float) -> Any:
    return gains.Score("SST-5, 100%", form, seed, best, best - 0.01, 60.0, f"{form} {seed}")


def test_the_table_tells_gains_and_what_they_are_worth(gains: Any) -> None:
    pairs = [("none", 0, 0.40), ("none", 1, 0.44)]
    pairs += [("input and output", seed, 0.48) for seed in range(2)]
    glance, note, forms = gains.markdown([score(gains, *pair) for pair in pairs]).split("\n\n")
    # √(0.04² / 2) = 0.0283; 6 points of 58 are gone, where the paper's are 3.3 of 48.6.
    assert glance.splitlines()[2:] == [
        "| SST-5, 100% | 42.00 ± 2.83 |  |  | 48.00 ± 0.00 | +6.00 (+2.1 sd) | 10.3% | 152% |"
    ]
    assert note == gains.NOTE
    assert forms.splitlines()[2:] == [
        "| SST-5, 100% | none | 2 | 42.00 ± 2.83 | 41.00 ± 2.83 |  | 60 s |",
        "| SST-5, 100% | input and output | 2 | 48.00 ± 0.00 | 47.00 ± 0.00 | +6.00 (+2.1 sd) "
        "| 60 s |",
    ]


def test_another_table_tells_what_helps(gains: Any) -> None:
    forms = [("input and output", 0.48), ("input and output", 0.52), ("the top layer alone", 0.47)]
    scores = [score(gains, form, seed, best) for seed, (form, best) in enumerate(forms)]
    *_, others, note, helps = gains.markdown(scores).split("\n\n")
    assert "the top layer" not in others
    assert note == gains.HELPS_NOTE
    assert helps.splitlines()[2:] == [
        "| SST-5, 100% | input and output | 2 | 50.00 ± 2.83 | 49.00 ± 2.83 |  | 60 s |",
        "| SST-5, 100% | the top layer alone | 1 | 47.00 | 46.00 | -3.00 | 60 s |",
    ]
    assert gains.HELPS_NOTE not in gains.markdown(scores[:2])


def test_what_is_known_is_read_again(gains: Any, tmp_path: Path) -> None:
    scores = [score(gains, "none", 0, 0.4), score(gains, "input", 0, 0.5)]
    gains.write_results(scores, tmp_path)
    known = gains.read_scores(tmp_path / "gains.json")
    assert list(known.values()) == scores and list(known) == ["none 0", "input 0"]


@pytest.mark.parametrize("text", ["[1]", "{", '[{"part": "a"}]'])
def test_another_file_is_an_error(text: str, gains: Any, tmp_path: Path) -> None:
    file = tmp_path / "gains.json"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match="gains.json: expected the `gains.json` of such"):
        gains.read_scores(file)
