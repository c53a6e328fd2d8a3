"""What a training reads, to be known again when it is recovered."""

import hashlib
import json
from typing import Any, Dict, Protocol, runtime_checkable

from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary


@runtime_checkable
class IdentifiedLoader(Protocol):
    """A data loader that knows its text by its content."""

    identity: str


def data_identity(loader: Any, vocab: Vocabulary) -> Dict[str, str]:
    """
    # Parameters

    loader : `DataLoader`
        Of the training data.
    vocab : `Vocabulary`
        Of the model.

    # Returns

    `Dict[str, str]`
        A digest of the vocabulary, its words in their order, and what the loader calls its text, if
        it is an `IdentifiedLoader`.
    """
    digest = hashlib.sha256()
    for namespace in sorted(vocab.get_namespaces()):
        words = sorted(vocab.get_index_to_token_vocabulary(namespace).items())
        digest.update(json.dumps([namespace, words]).encode("utf-8"))
    identity = {"vocabulary": digest.hexdigest()}
    if isinstance(loader, IdentifiedLoader):
        identity["training text"] = loader.identity
    return identity


def check_same_data(before: Dict[str, str], now: Dict[str, str]) -> None:
    """
    # Parameters

    before, now : `Dict[str, str]`
        What `data_identity` says.

    # Raises

    ConfigurationError
        If they differ.
    """
    for what in before.keys() & now.keys():
        if before[what] != now[what]:
            raise ConfigurationError(
                f"the training can't be recovered: its {what} is not the one that it began with, "
                "so that its place in the text, or the rows of its weights, would mean something "
                "else. Bring the files back as they were, or train in another folder, from the "
                "archive of this one (training_config/bilm/fine_tune.jsonnet)."
            )
