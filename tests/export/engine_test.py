from typing import Any, List, Tuple

from elmo_scratch.export import OneProcess
from elmo_scratch.export.plan import Span


class _Writing:
    """Takes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: List[Tuple[Span, float]] = []

    def write(self, span: Span, layers: Any, done: Any, seconds_a_part: float) -> None:
        self.asked.append((span, seconds_a_part))


def test_spans_are_written_in_their_order() -> None:
    writing: Any = _Writing()
    spans = [Span(0, 4), Span(6, 9)]
    OneProcess(5.0).write(writing, spans, None, lambda _: None)  # type: ignore[arg-type]
    assert writing.asked == [(spans[0], 5.0), (spans[1], 5.0)]


def test_only_one_process_follows_the_text() -> None:
    assert OneProcess.follows_the_text
