"""The classifiers of allennlp-models."""

import functools
from importlib import import_module
from typing import Any

NETWORK = "allennlp_models.classification.models.biattentive_classification_network"


def build_elmo(neighbour: Any) -> None:
    """
    The biattentive classifier takes ELMo by a parameter of its own, `elmo`, and refuses an embedder
    of that name. A config builds AllenNLP's `Elmo` there, which knows official files alone. Here it
    builds the package's, which takes the same settings, and archives.

    This is called after the module that its folder imports next: its own may be the one that
    imports PyTorch, when there is no hook yet.
    """
    classifier = import_module(NETWORK).BiattentiveClassificationNetwork
    original = classifier.from_params.__func__

    @classmethod  # type: ignore[misc]
    @functools.wraps(original)
    def from_params(cls: Any, *arguments: Any, **settings: Any) -> Any:
        # AllenNLP builds what the annotation says.
        classifier.__init__.__annotations__["elmo"] = import_module("elmo_scratch").Elmo
        return original(cls, *arguments, **settings)

    classifier.from_params = from_params
