"""What a loader of streams takes from its dataset reader."""

from typing import Dict, NamedTuple, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenIndexer

from elmo_scratch.alphabet import BEGIN_SENTENCE_WORD, END_SENTENCE_WORD
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
        If it has none for words with a namespace of the vocabulary, or others than these; or if it
        is to read a part of the text, or an indexer to add words: streams are made of whole files.
    """
    if reader.max_instances is not None:
        raise ConfigurationError(
            "the loader `elmo_scratch_stream` reads whole files: take `max_instances` out of the "
            "reader, and name fewer or shorter files"
        )
    by_kind: Dict[type, TokenIndexer] = {
        type(indexer): indexer for indexer in reader.token_indexers.values()
    }
    has_more = len(by_kind) < len(reader.token_indexers)  # of a kind that is there already
    words, characters = by_kind.pop(SingleIdTokenIndexer, None), by_kind.pop(CharacterIndexer, None)
    has_more = has_more or bool(by_kind)
    if not isinstance(words, SingleIdTokenIndexer) or words.namespace is None or has_more:
        raise ConfigurationError(
            "the loader `elmo_scratch_stream` needs in the reader's `token_indexers` a "
            "`single_id` with a namespace, for the words that are predicted, and, where the biLM "
            "reads characters, an `elmo_scratch_characters`, and no other"
        )
    if words._start_tokens or words._end_tokens or words._feature_name != "text":
        raise ConfigurationError(
            "the loader `elmo_scratch_stream` reads the words of the text and marks sentences "
            "itself: take `start_tokens`, `end_tokens` and `feature_name` out of the `single_id` "
            "of the reader's `token_indexers`"
        )
    assert characters is None or isinstance(characters, CharacterIndexer)
    return StreamIndexers(words, characters)


def check_marks(vocab: Vocabulary, namespace: str) -> None:
    """
    # Parameters

    vocab : `Vocabulary`
        With the marks of sentence boundaries, which a language model adds to its namespace.
    namespace : `str`
        That of the streams' words.

    # Raises

    ConfigurationError
        If they are not there: every word would pass for an unknown one.
    """
    words = vocab._token_to_index.get(namespace, {})
    if not words.keys() >= {BEGIN_SENTENCE_WORD, END_SENTENCE_WORD}:
        raise ConfigurationError(
            f"expected the marks {BEGIN_SENTENCE_WORD} and {END_SENTENCE_WORD} in the namespace "
            f"{namespace!r} of the vocabulary, as that of the reader's `single_id` is called, but "
            f"they are missing; there are {sorted(vocab.get_namespaces())}. Give the indexer, the "
            "vocabulary and the model the same `namespace`."
        )
