"""From sentences of words to the layers of a biLM, outside of any training."""

from elmo_scratch.embedders.sentences.indexers import IndexedBatch as IndexedBatch
from elmo_scratch.embedders.sentences.sentence_layers import SentenceLayers as SentenceLayers

__all__ = ["IndexedBatch", "SentenceLayers"]
