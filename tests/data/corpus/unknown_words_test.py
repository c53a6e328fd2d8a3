import logging

import pytest

from elmo_scratch.data.corpus import warn_of_unknown


@pytest.mark.parametrize("share, warns", [(0.0, False), (0.2, False), (0.21, True), (1.0, True)])
def test_much_that_is_unknown_is_a_warning(
    share: float, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        warn_of_unknown(share, "text.txt")
    message = f"{100 * share:.0f}% of the tokens of text.txt are not in the vocabulary"
    assert (message in caplog.text) == warns
