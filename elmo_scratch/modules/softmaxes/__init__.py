"""Output softmaxes: how a language model scores the words of its vocabulary."""

from elmo_scratch.modules.softmaxes.adaptive_softmax import AdaptiveSoftmax as AdaptiveSoftmax
from elmo_scratch.modules.softmaxes.full_softmax import FullSoftmax as FullSoftmax
from elmo_scratch.modules.softmaxes.output_softmax import OutputSoftmax as OutputSoftmax
from elmo_scratch.modules.softmaxes.output_softmax import ScoredWords as ScoredWords
from elmo_scratch.modules.softmaxes.sampled_softmax import SampledSoftmax as SampledSoftmax

__all__ = ["AdaptiveSoftmax", "FullSoftmax", "OutputSoftmax", "SampledSoftmax", "ScoredWords"]
