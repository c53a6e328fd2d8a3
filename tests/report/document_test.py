import math

import pytest

from elmo_scratch.report.document import shown, shown_mean, shown_metric, shown_seconds


@pytest.mark.parametrize(
    "number, text",
    [
        (0.123456, "0.1235"),
        (293.5187, "293.5"),
        (5, "5"),
        (1637.25, "1637"),
        (1234567.8, "1,234,568"),
        (0.00000123, "1.23e-06"),
        (math.nan, "NaN"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
    ],
)
def test_numbers_have_four_digits_that_count(number: float, text: str) -> None:
    assert shown(number) == text


def test_shares_are_percents() -> None:
    assert shown_metric("accuracy", 0.91687) == "91.69 %"
    assert shown_metric("perplexity", 0.5) == "0.5"
    assert shown_metric("accuracy", math.nan) == "NaN"
    assert shown_mean("accuracy", 0.91687, 0.0026) == "91.69 % ± 0.26"
    assert shown_mean("perplexity", 85.123, 1.234) == "85.12 ± 1.2"
    assert shown_mean("perplexity", 85.123, None) == "85.12"


@pytest.mark.parametrize(
    "seconds, text",
    [(2.54, "2.5 s"), (59.4, "59 s"), (522.5, "8 min 42 s"), (93600, "26 h 00 min")],
)
def test_time_spans_have_two_units(seconds: float, text: str) -> None:
    assert shown_seconds(seconds) == text
