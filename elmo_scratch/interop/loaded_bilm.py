"""A trained biLM that was read from files of any kind, and what came with it."""

from typing import Any, Dict, NamedTuple, Optional

from elmo_scratch.data.spelling import WordIndexer
from elmo_scratch.files.identity import ReadFiles
from elmo_scratch.interop.archives.blueprint import BiLmBlueprint
from elmo_scratch.interop.archives.training_facts import NO_FACTS, TrainingFacts
from elmo_scratch.interop.archives.weights import Tensors
from elmo_scratch.modules import BiLm


class LoadedSoftmax(NamedTuple):
    """
    The softmax of a language model: its block `softmax` of a config, `None` where there is none,
    its tensors by their names in an `OutputSoftmax`, and whether a word is looked up in lower case
    before it is scored.
    """

    config: Optional[Dict[str, Any]] = None
    tensors: Tensors = {}
    lowercase: bool = False


NO_SOFTMAX = LoadedSoftmax()


class LoadedMixes(NamedTuple):
    """
    The mixes of an `Elmo`: its settings, and their tensors by their names in it.
    """

    settings: Dict[str, Any]
    tensors: Tensors


class LoadedBiLm(NamedTuple):
    """
    # Parameters

    bilm : `BiLm`
        The biLM with its trained weights, in evaluation mode.
    blueprint : `BiLmBlueprint`
        Builds the biLM again. Its words are those that the biLM reads or predicts.
    word_indexer : `WordIndexer`
        Makes the ids that the biLM reads.
    files : `ReadFiles`
        The files that it was read from.
    softmax : `LoadedSoftmax`, optional (default = none)
        The softmax, if it was asked for and there is one.
    mixes : `LoadedMixes`, optional (default = `None`)
        The mixes, if an `Elmo` was saved.
    facts : `TrainingFacts`, optional (default = none)
        What is known of its training.
    """

    bilm: BiLm
    blueprint: BiLmBlueprint
    word_indexer: WordIndexer
    files: ReadFiles
    softmax: LoadedSoftmax = NO_SOFTMAX
    mixes: Optional[LoadedMixes] = None
    facts: TrainingFacts = NO_FACTS
