import logging

import pytest

from elmo_scratch.data.corpus import CorpusAudit, log_audit

AUDIT = CorpusAudit(
    tokens=12,
    sentences=3,
    distinct_words=5,
    cut_share=0.0,
    duplicate_lines=0,
    blank_lines=0,
    bytes_read=60,
)


@pytest.mark.parametrize("share, warns", [(0.0, False), (0.2, False), (0.21, True), (1.0, True)])
def test_much_that_is_unknown_is_a_warning(
    share: float, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    audit = AUDIT._replace(unknown_share=share)
    with caplog.at_level(logging.INFO):
        log_audit(audit, "text.txt")
    assert f"text.txt: {audit.describe()}" in caplog.text
    message = f"{100 * share:.0f}% of the tokens of text.txt are not in the vocabulary"
    assert (message in caplog.text) == warns


def test_without_a_vocabulary_nothing_is_unknown(caplog: pytest.LogCaptureFixture) -> None:
    log_audit(AUDIT, "text.txt")
    assert caplog.text == ""
