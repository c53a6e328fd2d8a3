"""What a quiet `allennlp predict` prints of an answer."""

import json
import sys
from pathlib import Path
from typing import Any, Optional

import pytest
from allennlp.commands.predict import _PredictManager

from elmo_scratch_compat.answers import ordered, shortened
from elmo_scratch_compat.terminal import quiet_terminal

ANSWER = {
    "logits": [[0.25] * 7] * 2,
    "token_ids": [2, 8, 3],
    "words": ["the", "river"],
    "loss": 1.5,
    "probabilities": {"money": 0.1234567, "water": 0.8765433},
    "class_probabilities": [[0.25] * 7] * 2,
    "label": "water",
}


class Predictor:
    """Gives one answer to all."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def _json_to_instance(self, asked: Any) -> Any:
        return asked

    def load_line(self, line: str) -> Any:
        return json.loads(line)

    def predict_json(self, asked: Any) -> Any:
        return self._json_to_instance(asked)

    def dump_line(self, found: Any) -> str:
        return f"{self.answer}\n"


def predict(answer: str, folder: Path, output_file: Optional[Path] = None) -> None:
    (folder / "asked.jsonl").write_text('{"sentence": "x"}\n')
    output = None if output_file is None else str(output_file)
    asked = str(folder / "asked.jsonl")
    predictor: Any = Predictor(answer)
    _PredictManager(predictor, asked, output, 1, True, False).run()


def test_what_people_look_at_comes_first_and_the_largest_probability_before_others() -> None:
    wanted = ["label", "probabilities", "words", "loss", "token_ids", "logits"]
    found = ordered(ANSWER)
    assert list(found) == [*wanted, "class_probabilities"]
    assert list(found["probabilities"]) == ["water", "money"]
    assert found == ANSWER


@pytest.mark.parametrize(
    "value, told",
    [
        (0.123456, 0.1235),
        (1234567.0, 1235000.0),
        (1234567, 1234567),
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        ([[0.5] * 7] * 2, "… 14 numbers"),
        ([0.123456] * 100, [0.1235] * 100),
        ([None, *[0.5] * 1200], "… 1,200 numbers"),
        ([["a", 0.123456]] * 9, [["a", 0.1235]] * 9),
    ],
)
def test_a_terminal_shows_few_digits_and_no_large_arrays(value: Any, told: Any) -> None:
    assert shortened({"x": value}) == {"x": told}


def test_a_quiet_command_prints_it_in_order_and_the_file_gets_what_the_predictor_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    answer = json.dumps(ANSWER)
    with quiet_terminal():
        predict(answer, tmp_path, tmp_path / "answers.jsonl")
    printed = capsys.readouterr().out.splitlines()[1]
    assert printed.startswith(
        'prediction:  {"label": "water", "probabilities": {"water": 0.8765433'
    )
    assert json.loads(printed.partition(": ")[2]) == ANSWER
    assert (tmp_path / "answers.jsonl").read_text() == f"{answer}\n"


def test_a_terminal_says_how_to_get_what_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with quiet_terminal():
        predict(json.dumps(ANSWER), tmp_path)
        predict('{"label": "water"}', tmp_path)
    _, first, _, told, _, second, _ = capsys.readouterr().out.split("\n")[:7]
    assert '"logits": "… 14 numbers"' in first
    assert told == "left out: large arrays, which --output-file FILE writes"
    assert second == 'prediction:  {"label": "water"}'


@pytest.mark.parametrize(
    "answer, shown",
    [
        ('{"label": "\\u0432\\u043e\\u0434\\u0430"}', '{"label": "вода"}'),
        ('{"label": "\\u009b1m"}', '{"label": "\\u009b1m"}'),
        ('{"label": "\\ud800"}', '{"label": "\\ud800"}'),
    ],
)
def test_a_terminal_shows_letters_of_any_script_and_nothing_that_it_would_obey(
    answer: str,
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    with quiet_terminal():
        predict(answer, tmp_path)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        predict(answer, tmp_path)
    printed = capsys.readouterr().out.split("\n")
    assert printed[1] == f"prediction:  {answer}"
    assert printed[4] == f"prediction:  {shown}"


@pytest.mark.parametrize("answer", ["plain text", "[1, 2]"])
def test_what_is_no_object_is_printed_as_it_is(
    answer: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with quiet_terminal():
        predict(answer, tmp_path)
    assert f"prediction:  {answer}\n" in capsys.readouterr().out


def test_other_commands_print_what_the_predictor_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    predict(json.dumps(ANSWER), tmp_path)
    assert f"prediction:  {json.dumps(ANSWER)}\n" in capsys.readouterr().out
