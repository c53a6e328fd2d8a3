"""What a training reads, to be known again when it is recovered."""

import hashlib
import json
from typing import Any, Dict, Protocol, Sequence, runtime_checkable

from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

WAY_OF_READING = "way of reading the text"
"""What may change from epoch to epoch."""


@runtime_checkable
class IdentifiedLoader(Protocol):
    """
    A data loader that knows its text by its content, and all that decides how that is cut into
    batches.
    """

    identity: str
    way_of_reading: str


def data_identity(loader: Any, vocab: Vocabulary) -> Dict[str, str]:
    """
    # Parameters

    loader : `DataLoader`
        Of the training data.
    vocab : `Vocabulary`
        Of the model.

    # Returns

    `Dict[str, str]`
        A digest of the vocabulary, its words in their order, and what the loader calls its text and
        its way of reading it, if it is an `IdentifiedLoader`.
    """
    digest = hashlib.sha256()
    for namespace in sorted(vocab.get_namespaces()):
        words = sorted(vocab.get_index_to_token_vocabulary(namespace).items())
        digest.update(json.dumps([namespace, words]).encode("utf-8"))
    identity = {"vocabulary": digest.hexdigest()}
    if isinstance(loader, IdentifiedLoader):
        identity["training text"] = loader.identity
        identity[WAY_OF_READING] = loader.way_of_reading
    return identity


def check_same_data(
    before: Dict[str, str], now: Dict[str, str], is_within_epoch: bool = True
) -> None:
    """
    # Parameters

    before, now : `Dict[str, str]`
        What `data_identity` says. A checkpoint that doesn't know it, `{}`, is not in the way.
    is_within_epoch : `bool`, optional (default = `True`)
        Whether the training was stopped within an epoch. Between two of them the way of reading may
        change, and a loader that knows its text may take the place of one that doesn't.

    # Raises

    ConfigurationError
        If they differ.
    """
    if not before:
        return
    may_differ = set() if is_within_epoch else {WAY_OF_READING} | (before.keys() ^ now.keys())
    for what in {**before, **now}:
        one, other = (identity.get(what, "not known") for identity in (before, now))
        if one != other and what not in may_differ:
            raise ConfigurationError(
                f"the training can't be recovered: its {what} is not the one that it began with "
                f"({one}, but now {other}), so that its place in the text, or the "
                "rows of its weights, would mean something else. Bring files and settings back as "
                "they were, or train in another folder, from the "
                "archive of this one (training_config/bilm/fine_tune.jsonnet)."
            )


def check_shared_data(of_workers: Sequence[Dict[str, str]]) -> None:
    """
    # Parameters

    of_workers : `Sequence[Dict[str, str]]`
        What `data_identity` says to each worker of a distributed training.

    # Raises

    ConfigurationError
        If they differ: workers average their gradients, whatever words the rows of their weights
        stand for.
    """
    first = of_workers[0]
    for rank, own in enumerate(of_workers):
        for what in {**first, **own}:
            one, other = (identity.get(what, "not known") for identity in (first, own))
            if one != other:
                raise ConfigurationError(
                    f"the workers can't train together: the {what} of worker {rank} is not that of "
                    f"worker 0 ({other}, but there {one}). Give each machine the same files, and "
                    "the same settings."
                )
