"""The answers of `allennlp predict` as a quiet command prints them."""

import functools
import json
import sys
from typing import Any, Dict, List, Optional

from elmo_scratch_compat.terminal import is_quiet

MOST_NUMBERS, MOST_IN_MATRIX = 100, 12
"""The most numbers of a list, and of a list of lists, that a terminal shows."""

DIGITS = 4
"""The significant digits of a number in a terminal."""


def show_answers(predict: Any) -> None:
    """
    AllenNLP prints an answer as its file gets it: in the order in which a model computes, logits
    and ids before the label, with 17 digits a number, and some hundred numbers a word. A quiet
    command prints first what people look at. In a terminal it also rounds numbers, leaves out large
    arrays, and writes letters of all scripts, which AllenNLP escapes. Files and pipes get all.
    """
    manager = predict._PredictManager
    show, run = manager._maybe_print_to_console_and_file, manager.run

    @functools.wraps(show)
    def _maybe_print_to_console_and_file(
        self: Any, index: int, prediction: str, model_input: Optional[str] = None
    ) -> None:
        answer = _object_of(prediction) if is_quiet() and self._print_to_console else None
        if answer is None:
            show(self, index, prediction, model_input)
            return
        told = json.dumps(ordered(answer))
        if sys.stdout.isatty():
            short = shortened(ordered(answer))
            self._has_left_out |= _num_numbers(short) < _num_numbers(answer)
            asked = _object_of(model_input or "")
            told = _legible(short)
            model_input = model_input if asked is None else _legible(asked)
        file, self._output_file = self._output_file, None
        show(self, index, f"{told}\n", model_input)
        self._output_file = file
        if file is not None:
            file.write(prediction)

    @functools.wraps(run)
    def run_and_tell(self: Any) -> None:
        self._has_left_out = False
        run(self)
        if self._has_left_out:
            print("left out: large arrays, which --output-file FILE writes")

    manager._maybe_print_to_console_and_file = _maybe_print_to_console_and_file
    manager.run = run_and_tell


def _object_of(text: str) -> Optional[Dict[str, Any]]:
    """An object of JSON; `None` if the text is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _legible(value: Dict[str, Any]) -> str:
    """JSON with the letters of any script, as far as the terminal has them, and no others."""
    letters = json.dumps(value, ensure_ascii=False)
    if not letters.isprintable() or not _can_print(letters):
        return json.dumps(value)
    return letters


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return True


def ordered(answer: Dict[str, Any]) -> Dict[str, Any]:
    """
    The same keys: first the label and its probability, then what holds texts, single numbers, lists
    of numbers and last arrays of them. Maps from names to numbers begin with the largest.
    """
    keys = sorted(answer, key=lambda key: _rank(key, answer[key]))
    return {key: _largest_first(answer[key]) for key in keys}


def _rank(key: str, value: Any) -> int:
    is_flat = isinstance(value, (int, float, dict)) or (
        _num_numbers(value) > 0 and _depth(value) == 1
    )
    if "logit" not in key and "prob" not in key and key.endswith(("label", "labels")):
        return 0
    if "prob" in key and is_flat:
        return 1
    if _has_text(value):
        return 2
    return 3 + min(_depth(value), 2)


def _largest_first(value: Any) -> Any:
    is_map = isinstance(value, dict) and all(type(one) is float for one in value.values())
    if not is_map:
        return value
    return dict(sorted(value.items(), key=lambda item: item[1], reverse=True))


def shortened(value: Any) -> Any:
    """The same with rounded numbers, and in the place of an array of many how many there are."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: shortened(one) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    number = 0 if _has_text(value) else _num_numbers(value)
    if number > (MOST_NUMBERS if _depth(value) == 1 else MOST_IN_MATRIX):
        return f"… {number:,} numbers"
    return [shortened(one) for one in value]


def _members(value: Any) -> List[Any]:
    return list(value.values()) if isinstance(value, dict) else value


def _depth(value: Any) -> int:
    """How deeply lists and maps are nested: 0 for what is neither."""
    if not isinstance(value, (list, dict)):
        return 0
    return 1 + max(map(_depth, _members(value)), default=0)


def _has_text(value: Any) -> bool:
    if isinstance(value, (list, dict)):
        return any(map(_has_text, _members(value)))
    return isinstance(value, str)


def _num_numbers(value: Any) -> int:
    if isinstance(value, (list, dict)):
        return sum(map(_num_numbers, _members(value)))
    return int(isinstance(value, (int, float)))
