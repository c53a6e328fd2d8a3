import logging

import pytest

from elmo_scratch.terminal import without_information


def test_information_of_a_logger_is_kept_back_in_the_block_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    told, other = logging.getLogger("told"), logging.getLogger("other")
    with without_information("told"):
        told.info("kept back")
        told.warning("a warning")
        other.info("another's")
    told.info("after it")
    assert caplog.messages == ["a warning", "another's", "after it"]
    assert not told.filters
