"""How a pre-training starts from the weights of another biLM."""

import logging
from os import PathLike
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple, Optional, Union

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import BiLmBlueprint, WordList
from elmo_scratch.interop.archives.archive import without_weights
from elmo_scratch.interop.archives.blueprint import NO_CHANGES, BiLmChanges, has_same_weights
from elmo_scratch.interop.archives.sidecar import keep_bilm_config, kept_bilm_config
from elmo_scratch.models.starting_point import StartingPoint
from elmo_scratch.modules import BiLm, OutputSoftmax

logger = logging.getLogger(__name__)

WORD_VECTORS = "token_encoder.embedding.weight"
"""The tensor of a biLM of words that has a row for each."""

ARCHIVED_WEIGHTS = "weights.th"
"""Lies beside the config in an unpacked archive, and never in the output folder of a training."""

WEIGHTS = (ARCHIVED_WEIGHTS, "best.th", "model_state_*.th")
"""What holds all weights of the language model."""


class Started(NamedTuple):
    """
    # Parameters

    bilm : `BiLm`
        Ready to be trained on.
    point : `Optional[StartingPoint]`
        Where it comes from; `None` where the weights are to come from an archive of the training.
    """

    bilm: BiLm
    point: Optional[StartingPoint]


def start_bilm(
    read: Callable[[], StartingPoint],
    words: WordList,
    changes: BiLmChanges = NO_CHANGES,
    serialization_dir: Optional[Union[str, PathLike]] = None,
) -> Started:
    """
    # Parameters

    read : `Callable[[], StartingPoint]`
        Is not called where the archive of the training is loaded: it holds all weights, and the
        configuration of the biLM beside its vocabulary.
    words : `WordList`
        Of the training. Words that the starting point lacks start at random.
    changes : `BiLmChanges`, optional (default = none)
        Other settings than those of the starting point.
    serialization_dir : `Union[str, PathLike]`, optional (default = `None`)
        The output folder of the training, or what was unpacked of its archive.

    # Returns

    `Started`

    # Raises

    ConfigurationError
        If there is no such starting point, and no weights in the folder to go on from, or it has no
        `warm` state that should be started from.
    """
    kept: Optional[Dict[str, Any]] = None
    # A training that was killed before it saved has no weights, and starts once more.
    if serialization_dir is not None and _has_weights(Path(serialization_dir)):
        kept = kept_bilm_config(serialization_dir)
    point: Optional[StartingPoint] = None
    if kept is None or not Path(serialization_dir or "", ARCHIVED_WEIGHTS).exists():
        try:
            point = read()
        except ConfigurationError:
            if kept is None:
                raise
    if point is not None and (kept is None or has_same_weights(kept, point.config)):
        # Where both are there, what the training began with counts, as in its own archive.
        config = changes.of(point.config if kept is None else kept)
        bilm = BiLmBlueprint(config, words).build()
        _copy_bilm(point, words, bilm)
        if kept is None and serialization_dir is not None:
            keep_bilm_config(serialization_dir, config)
        return Started(bilm, point)
    assert kept is not None
    return Started(without_weights(BiLmBlueprint(changes.of(kept), words).build()), None)


def start_softmax(softmax: OutputSoftmax, point: StartingPoint, words: WordList) -> bool:
    """
    Takes over what the softmax of the starting point knows of the words that both have, or, of a
    softmax that is more than a table of words, everything if all words are the same.

    # Parameters

    softmax : `OutputSoftmax`
        Of the training.
    point : `StartingPoint`
        Where it starts from.
    words : `WordList`
        Of the training.

    # Returns

    `bool`
        Whether there was anything that fits.
    """
    own, theirs = dict(softmax.named_parameters()), point.softmax
    is_same = point.words.words == words.words
    if any(name not in theirs for name in own):
        return False
    are_tables = all(
        (len(own[name]), len(theirs[name])) == (len(words.words), len(point.words.words))
        and own[name].shape[1:] == theirs[name].shape[1:]
        for name in own
    )
    if not are_tables and not (
        is_same and all(own[name].shape == theirs[name].shape for name in own)
    ):
        return False
    ids = words.ids_in(point.words)
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(_rows(parameter, theirs[name], ids) if are_tables else theirs[name])
    logger.info("%d of %d words start from known ones", int((ids >= 0).sum()), len(ids))
    return True


def _copy_bilm(point: StartingPoint, words: WordList, bilm: BiLm) -> None:
    """Takes over the weights of a biLM of the same form, those of words by their spelling."""
    own = bilm.state_dict()
    missing = [name for name in own if name not in point.bilm]
    if missing:
        raise ConfigurationError(
            'a training with the `state` "warm" needs a biLM to start from that was warmed up; '
            'choose "reset" or "carry"'
        )
    copied = {name: point.bilm[name] for name in own}
    if WORD_VECTORS in own:
        ids = words.ids_in(point.words)
        copied[WORD_VECTORS] = _rows(own[WORD_VECTORS], copied[WORD_VECTORS], ids)
    bilm.load_state_dict(copied)


def _has_weights(folder: Path) -> bool:
    """Whether weights lie in the folder of a training or of its archive."""
    return any(True for name in WEIGHTS for _ in folder.glob(name))


def _rows(own: torch.Tensor, theirs: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Rows of another table where there is an id, and else its own."""
    rows = own.detach().clone()
    rows[ids >= 0] = theirs[ids[ids >= 0]]
    return rows
