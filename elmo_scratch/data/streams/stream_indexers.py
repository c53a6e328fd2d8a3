"""What a loader of streams takes from its dataset reader."""

from typing import Dict, NamedTuple, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenIndexer

from elmo_scratch.data.character_indexer import CharacterIndexer
from elmo_scratch.data.sentences_reader import SentencesReader


class StreamIndexers(NamedTuple):
    """
    The indexers of a reader.

    # Parameters

    words : `SingleIdTokenIndexer`
        Gives the words that are predicted their ids.
    characters : `CharacterIndexer`, optional
        Spells them, where the biLM reads characters.
    """

    words: SingleIdTokenIndexer
    characters: Optional[CharacterIndexer]


def stream_indexers(reader: SentencesReader) -> StreamIndexers:
    """
    # Parameters

    reader : `SentencesReader`
        The reader of the sentences that the streams are made of.

    # Raises

    ConfigurationError
        If it has none for words with a namespace of the vocabulary, or others than these.
    """
    by_kind: Dict[type, TokenIndexer] = {
        type(indexer): indexer for indexer in reader.token_indexers.values()
    }
    words, characters = by_kind.pop(SingleIdTokenIndexer, None), by_kind.pop(CharacterIndexer, None)
    if not isinstance(words, SingleIdTokenIndexer) or words.namespace is None or by_kind:
        raise ConfigurationError(
            "the loader `elmo_scratch_stream` needs in the reader's `token_indexers` a "
            "`single_id` with a namespace, for the words that are predicted, and, where the biLM "
            "reads characters, an `elmo_scratch_characters`, and no other"
        )
    assert characters is None or isinstance(characters, CharacterIndexer)
    return StreamIndexers(words, characters)
