from typing import Dict

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenCharactersIndexer, TokenIndexer

from elmo_scratch.data import CharacterIndexer, SentencesReader
from elmo_scratch.data.streams.stream_indexers import stream_indexers

WORDS, CHARACTERS = SingleIdTokenIndexer(), CharacterIndexer()


def test_words_are_enough() -> None:
    assert stream_indexers(SentencesReader(token_indexers={"ids": WORDS})) == (WORDS, None)


def test_characters_may_come_with_them() -> None:
    reader = SentencesReader(token_indexers={"spelling": CHARACTERS, "ids": WORDS})
    assert stream_indexers(reader) == (WORDS, CHARACTERS)


@pytest.mark.parametrize(
    "indexers",
    [
        {"letters": TokenCharactersIndexer()},
        {"characters": CHARACTERS},
        {"ids": SingleIdTokenIndexer(namespace=None)},
        {"ids": WORDS, "letters": TokenCharactersIndexer()},
    ],
)
def test_other_indexers_are_an_error(indexers: Dict[str, TokenIndexer]) -> None:
    with pytest.raises(ConfigurationError, match="needs in the reader's `token_indexers` a `sing"):
        stream_indexers(SentencesReader(token_indexers=indexers))
