"""The way of spelling that an archive's biLM was trained with."""

from elmo_scratch.data.character_indexer import CharacterIndexer
from elmo_scratch.data.sentences_reader import SentencesReader
from elmo_scratch.embedders.sentences.character_speller import CharacterSpeller
from elmo_scratch.embedders.sentences.reader_speller import ReaderSpeller
from elmo_scratch.embedders.sentences.speller import Speller
from elmo_scratch.interop.archives.archive import PretrainedBiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder


def archive_speller(pretrained: PretrainedBiLm) -> Speller:
    """
    # Parameters

    pretrained : `PretrainedBiLm`
        A biLM and the reader that it was trained with.

    # Returns

    `Speller`
        The reader's indexers; or, many times faster, what makes the same ids without them.
    """
    encoder, reader = pretrained.bilm.token_encoder, pretrained.reader
    if isinstance(encoder, CharCnnEncoder) and isinstance(reader, SentencesReader):
        makers = [
            indexer
            for indexer in reader.token_indexers.values()
            if "elmo_tokens" in indexer.get_empty_token_list()
        ]
        if len(makers) == 1 and isinstance(makers[0], CharacterIndexer):
            max_characters = makers[0].max_characters_per_token
            # Otherwise the error of the slower way says what doesn't fit.
            if max_characters == encoder.max_characters_per_token:
                return CharacterSpeller(max_characters)
    return ReaderSpeller(reader, pretrained.vocab, encoder)
