"""
Text to batches: readers, tokenizers, prepared corpora, vocabularies and streams.

The room promises that every sentence it yields came from a file that was checked line by line: a
file that is empty, is not UTF-8 or has a malformed row raises one `ConfigurationError` that names
the file and the line.
"""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from elmo_scratch.data.corpus import PreparedCorpus as PreparedCorpus
    from elmo_scratch.data.corpus_vocabulary import CorpusVocabulary as CorpusVocabulary
    from elmo_scratch.data.indexers import CharacterIndexer as CharacterIndexer
    from elmo_scratch.data.indexers import CodePointIndexer as CodePointIndexer
    from elmo_scratch.data.readers import AgNewsReader as AgNewsReader
    from elmo_scratch.data.readers import SentencesReader as SentencesReader
    from elmo_scratch.data.readers import UdPosReader as UdPosReader
    from elmo_scratch.data.spacy_blank_tokenizer import SpacyBlankTokenizer as SpacyBlankTokenizer
    from elmo_scratch.data.spelling import batch_to_ids as batch_to_ids
    from elmo_scratch.data.streams import StreamLoader as StreamLoader
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "AgNewsReader": "readers",
            "CharacterIndexer": "indexers",
            "CodePointIndexer": "indexers",
            "CorpusVocabulary": "corpus_vocabulary",
            "PreparedCorpus": "corpus",
            "SentencesReader": "readers",
            "SpacyBlankTokenizer": "spacy_blank_tokenizer",
            "StreamLoader": "streams",
            "UdPosReader": "readers",
            "batch_to_ids": "spelling",
        },
    )

__all__ = [
    "AgNewsReader",
    "CharacterIndexer",
    "CodePointIndexer",
    "CorpusVocabulary",
    "PreparedCorpus",
    "SentencesReader",
    "SpacyBlankTokenizer",
    "StreamLoader",
    "UdPosReader",
    "batch_to_ids",
]
