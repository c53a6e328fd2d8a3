"""Models that a config assembles and AllenNLP's trainer trains."""

from elmo_scratch.models.classifier import Classifier as Classifier
from elmo_scratch.models.classifier import ConcatenatedPooling as ConcatenatedPooling
from elmo_scratch.models.language_model import LanguageModel as LanguageModel
from elmo_scratch.models.pretrained import StartedLanguageModel as StartedLanguageModel

__all__ = ["Classifier", "ConcatenatedPooling", "LanguageModel", "StartedLanguageModel"]
