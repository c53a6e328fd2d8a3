"""The layers of sentences of words, outside of any training."""

from elmo_scratch.data.spelling import IndexedBatch as IndexedBatch
from elmo_scratch.embedders.sentences.sentence_layers import SentenceLayers as SentenceLayers

__all__ = ["IndexedBatch", "SentenceLayers"]
