"""Weights that were saved with AllenNLP's `Elmo`, for the classes that take its place."""

import logging
import re
from typing import Any, Dict

import torch

from elmo_scratch.interop.official.tensors import bilm_weights, mix_weights
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.mixes import TrainableMix

logger = logging.getLogger(__name__)

Weights = Dict[str, torch.Tensor]

CACHED = "_word_embedding.weight"
"""The vectors of `vocab_to_cache`, which AllenNLP trains with the biLM."""


def accept_elmo(elmo: Any, weights: Weights, prefix: str, *_: Any) -> None:
    """
    Gives what AllenNLP's `Elmo` has saved our names, before it is loaded; a hook for
    `register_load_state_dict_pre_hook`. What has no place here keeps its name, so that loading
    tells it.

    # Parameters

    elmo : `Elmo`
        What the weights are for.
    weights : `Dict[str, torch.Tensor]`
        Those of a whole model: changed.
    prefix : `str`
        What the names of `elmo`'s begin with.
    """
    bilm = _taken(weights, f"{prefix}_elmo_lstm.")
    if CACHED in bilm and any(weight.requires_grad for weight in elmo.bilm.parameters()):
        logger.warning(
            "What AllenNLP's Elmo learned about the words of `vocab_to_cache` (%s_elmo_lstm.%s) is "
            "left out: here their vectors come from their characters. Where words were looked up "
            "in that training, vectors differ.",
            prefix,
            CACHED,
        )
    # Another module than ours has the names that it has.
    ours = bilm_weights(bilm) if isinstance(elmo.bilm, BiLm) else bilm
    _put(weights, f"{prefix}bilm.", ours)
    numbers = {
        int(match[1])
        for name in weights
        if (match := re.match(rf"{re.escape(prefix)}scalar_mix_(\d+)\.", name))
    }
    for number, mix in enumerate(elmo.mixes):
        if number in numbers and isinstance(mix, TrainableMix):
            theirs = _taken(weights, f"{prefix}scalar_mix_{number}.")
            _put(weights, f"{prefix}mixes.{number}.", mix_weights(theirs))


def accept_embedder(_: Any, weights: Weights, prefix: str, *__: Any) -> None:
    """As `accept_elmo`, for what AllenNLP's `elmo_token_embedder` has saved around its `Elmo`."""
    for theirs, ours in (("_elmo.", "elmo."), ("_projection.", "projection.")):
        _put(weights, prefix + ours, _taken(weights, prefix + theirs))


def _taken(weights: Weights, prefix: str) -> Weights:
    """Those whose names begin so, without that beginning; they are taken out."""
    names = [name for name in weights if name.startswith(prefix)]
    return {name[len(prefix) :]: weights.pop(name) for name in names}


def _put(weights: Weights, prefix: str, more: Weights) -> None:
    """Adds weights under names that begin so."""
    weights.update({prefix + name: tensor for name, tensor in more.items()})
