"""
Scores over an epoch. Every metric here sums exact counts over the whole set, never averages the
results of batches, and agrees among the workers of a distributed run.
"""

from elmo_scratch.metrics.confusion_matrix import ConfusionMatrix as ConfusionMatrix
from elmo_scratch.metrics.perplexity import Perplexity as Perplexity
from elmo_scratch.metrics.precision_recall_f1 import PrecisionRecallF1 as PrecisionRecallF1
from elmo_scratch.metrics.word_prediction import WordPrediction as WordPrediction

__all__ = ["ConfusionMatrix", "Perplexity", "PrecisionRecallF1", "WordPrediction"]
