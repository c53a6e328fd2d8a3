"""The classifiers of allennlp-models."""

import functools
from importlib import import_module
from typing import Any

NETWORK = "allennlp_models.classification.models.biattentive_classification_network"


def build_elmo_and_predict(neighbour: Any) -> None:
    """
    Helps the biattentive classifier to ELMo and to a predictor, when the module has run that its
    folder imports next: its own may be the one that imports PyTorch, when there is no hook yet.
    """
    classifier = import_module(NETWORK).BiattentiveClassificationNetwork
    build_elmo(classifier)
    name_predictor(classifier)


def build_elmo(classifier: Any) -> None:
    """
    The biattentive classifier takes ELMo by a parameter of its own, `elmo`, and refuses an embedder
    of that name. A config builds AllenNLP's `Elmo` there, which knows official files alone. Here it
    builds the package's, which takes the same settings, and archives.
    """
    original = classifier.from_params.__func__

    @classmethod  # type: ignore[misc]
    @functools.wraps(original)
    def from_params(cls: Any, *arguments: Any, **settings: Any) -> Any:
        # AllenNLP builds what the annotation says.
        classifier.__init__.__annotations__["elmo"] = import_module("elmo_scratch").Elmo
        return original(cls, *arguments, **settings)

    classifier.from_params = from_params


def name_predictor(classifier: Any) -> None:
    """
    `allennlp predict` ends in a `NotImplementedError` where a model names no predictor; the one for
    classifiers of texts serves this one.
    """
    classifier.default_predictor = classifier.default_predictor or "text_classifier"
