"""From sentences of words to the layers of a biLM, outside of any training."""

from elmo_scratch.embedders.sentences.sentence_layers import SentenceLayers as SentenceLayers
from elmo_scratch.embedders.sentences.spellers import SpelledBatch as SpelledBatch

__all__ = ["SentenceLayers", "SpelledBatch"]
