from typing import Any, Dict

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenCharactersIndexer, TokenIndexer

from elmo_scratch.data import CharacterIndexer, SentencesReader
from elmo_scratch.data.streams import check_marks, stream_indexers

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
        {"ids": WORDS, "lower": SingleIdTokenIndexer(lowercase_tokens=True)},
        {"ids": WORDS, "characters": CHARACTERS, "again": CharacterIndexer()},
    ],
)
def test_other_indexers_are_an_error(indexers: Dict[str, TokenIndexer]) -> None:
    with pytest.raises(ConfigurationError, match="needs in the reader's `token_indexers` a `sing"):
        stream_indexers(SentencesReader(token_indexers=indexers))


@pytest.mark.parametrize(
    "settings",
    [{"start_tokens": ["<S>"]}, {"end_tokens": ["</S>"]}, {"feature_name": "lemma_"}],
)
def test_an_indexer_that_reads_other_words_is_an_error(settings: Dict[str, Any]) -> None:
    reader = SentencesReader(token_indexers={"ids": SingleIdTokenIndexer(**settings)})
    with pytest.raises(ConfigurationError, match="take `start_tokens`, `end_tokens` and"):
        stream_indexers(reader)


def test_a_reader_of_a_part_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="take `max_instances` out of the reader"):
        stream_indexers(SentencesReader(max_instances=3))


def test_marks_are_looked_for_in_the_namespace_of_the_words() -> None:
    vocab = Vocabulary(tokens_to_add={"words": ["<S>", "</S>", "the"], "tokens": ["the"]})
    check_marks(vocab, "words")
    for namespace in ("tokens", "others"):
        with pytest.raises(ConfigurationError, match=f"in the namespace '{namespace}' of the voc"):
            check_marks(vocab, namespace)
    assert vocab.get_namespaces() == {"words", "tokens"}
