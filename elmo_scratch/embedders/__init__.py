"""biLMs where AllenNLP's models expect an embedder of tokens, and where Python has sentences."""

from elmo_scratch.embedders.bilm_embedder import BiLmEmbedder as BiLmEmbedder
from elmo_scratch.embedders.elmo import Elmo as Elmo
from elmo_scratch.embedders.official_embedder import OfficialEmbedder as OfficialEmbedder
from elmo_scratch.embedders.sentence_layers import SentenceLayers as SentenceLayers

__all__ = ["BiLmEmbedder", "Elmo", "OfficialEmbedder", "SentenceLayers"]
