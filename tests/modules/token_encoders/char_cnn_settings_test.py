from typing import List, Tuple

import pytest

from elmo_scratch.modules.token_encoders.char_cnn_encoder import check_settings


def test_settings_of_the_released_models_pass() -> None:
    assert check_settings([(1, 32), (7, 1024)], "relu", 50) is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize(
    "filters, activation, message",
    [
        ([(1, 32)], "gelu", "`activation` among relu, tanh, but got 'gelu'"),
        ([], "relu", "at least one pair of a width and a number in `filters`"),
        ([(51, 2)], "tanh", r"widths from 1 to 50 .* but got \[51, 2\]"),
    ],
)
def test_others_are_errors(filters: List[Tuple[int, int]], activation: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_settings(filters, activation, 50)
