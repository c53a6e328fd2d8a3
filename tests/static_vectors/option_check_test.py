import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.static_vectors import check_option


@pytest.mark.parametrize("value", [1, 1.5, 10**9])
def test_what_lies_in_the_range_passes(value: float) -> None:
    check_option("window", value, 1)


@pytest.mark.parametrize("value", [0, 1])
def test_both_ends_belong_to_it(value: float) -> None:
    check_option("exponent", value, 0, 1)


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_what_is_too_small_or_no_number_is_an_error(value: float) -> None:
    with pytest.raises(ConfigurationError, match=f"^expected --window of 1 or more, got {value}$"):
        check_option("window", value, 1)


def test_what_is_too_large_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="^expected --exponent of 0 to 1, got 2$"):
        check_option("exponent", 2, 0, 1)
