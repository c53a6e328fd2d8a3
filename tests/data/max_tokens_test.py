from typing import Any, Callable

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data import AgNewsReader, SentencesReader
from elmo_scratch.data.corpus import PreparedCorpus
from elmo_scratch.data.lines import check_max_tokens
from tests import FIXTURES_ROOT


def corpus(max_tokens: int) -> PreparedCorpus:
    return PreparedCorpus.of(FIXTURES_ROOT / "text" / "tour.txt", max_tokens=max_tokens)


@pytest.mark.parametrize("make", [AgNewsReader, SentencesReader, corpus])
@pytest.mark.parametrize("max_tokens", [0, -1])
def test_whatever_reads_text_refuses_to_read_none(
    make: Callable[..., Any], max_tokens: int
) -> None:
    with pytest.raises(ConfigurationError, match=f"at least 1, but got {max_tokens}"):
        make(max_tokens=max_tokens)


def test_all_tokens_and_the_first_are_no_error() -> None:
    check_max_tokens(None)
    check_max_tokens(1)
