"""The weights of AllenNLP's `Elmo`, by our names."""

import re
from typing import Callable, Dict, List, NamedTuple, Sequence

import torch

DIRECTIONS = {"forward": "left_to_right", "backward": "right_to_left"}

GATES = [0, 2, 1, 3]
"""AllenNLP's order is i, f, j, o; that of the original, and ours, i, j, f, o."""


class _Row(NamedTuple):
    """One kind of tensor: its name there, the names here, and how its numbers lie here."""

    theirs: str
    ours: List[str]
    to_ours: Callable[[torch.Tensor], Sequence[torch.Tensor]]


def _same(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    return [tensor]


def _filters(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    """From `(filters, c, width)` to `(filters, width * c)`."""
    return [tensor.transpose(1, 2).flatten(1)]


def _highway(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    """The gate there is the share that stays as it was, here the share that is transformed."""
    transform, stay = tensor.chunk(2)
    return [transform, -stay]


def _gates(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    return [tensor.unflatten(0, (4, -1))[GATES].flatten(0, 1)]


def _bias(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    """There the forget gate's constant is a part of the bias."""
    (bias,) = _gates(tensor)
    first, last = len(bias) // 2, len(bias) * 3 // 4
    return [torch.cat([bias[:first], bias[first:last] - 1.0, bias[last:]])]


_ENCODER, _ENCODER_HERE = r"_token_embedder\.", "token_encoder."
_LAYER, _LAYER_HERE = r"_elmo_lstm\.(forward|backward)_layer_(\d+)\.", "{}.layers.{}."

_TABLE = [
    _Row(
        rf"{_ENCODER}_char_embedding_weights",
        [f"{_ENCODER_HERE}convolution.embedding.weight"],
        _same,
    ),
    _Row(
        rf"{_ENCODER}char_conv_(\d+)\.weight",
        [f"{_ENCODER_HERE}convolution.convolutions.{{}}.weight"],
        _filters,
    ),
    _Row(
        rf"{_ENCODER}char_conv_(\d+)\.bias",
        [f"{_ENCODER_HERE}convolution.convolutions.{{}}.bias"],
        _same,
    ),
    _Row(
        rf"{_ENCODER}_highways\._layers\.(\d+)\.(weight|bias)",
        [f"{_ENCODER_HERE}highways.{{}}.{part}.{{}}" for part in ("transform", "carry")],
        _highway,
    ),
    _Row(rf"{_ENCODER}_projection\.(weight|bias)", [f"{_ENCODER_HERE}projection.{{}}"], _same),
    _Row(rf"{_LAYER}input_linearity\.weight", [f"{_LAYER_HERE}input_weight"], _gates),
    _Row(rf"{_LAYER}state_linearity\.weight", [f"{_LAYER_HERE}recurrent_weight"], _gates),
    _Row(rf"{_LAYER}state_linearity\.bias", [f"{_LAYER_HERE}bias"], _bias),
    _Row(rf"{_LAYER}state_projection\.weight", [f"{_LAYER_HERE}projection_weight"], _same),
    # The vectors of `vocab_to_cache`, which are computed here.
    _Row(r"_word_embedding\.weight", [], lambda _: []),
]


def bilm_weights(theirs: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """
    # Parameters

    theirs : `Dict[str, torch.Tensor]`
        Of the biLM in `allennlp.modules.elmo.Elmo`, by the names of its `state_dict()`.

    # Returns

    `Dict[str, torch.Tensor]`
        The same weights by the names of a `BiLm` over characters. What has no such name keeps its
        own.
    """
    ours: Dict[str, torch.Tensor] = {}
    for name, tensor in theirs.items():
        for row in _TABLE:
            if match := re.fullmatch(row.theirs, name):
                groups = [DIRECTIONS.get(group, group) for group in match.groups()]
                names = [template.format(*groups) for template in row.ours]
                ours.update(zip(names, row.to_ours(tensor)))
                break
        else:
            ours[name] = tensor
    return ours


def mix_weights(theirs: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """
    # Parameters

    theirs : `Dict[str, torch.Tensor]`
        Of AllenNLP's `ScalarMix`, by the names of its `state_dict()`: a weight a layer and γ, each
        of shape `(1,)`.

    # Returns

    `Dict[str, torch.Tensor]`
        The same by the names of a `TrainableMix`.
    """
    ours = {name: tensor for name, tensor in theirs.items() if "scalar_parameters" not in name}
    if "gamma" in ours:
        ours["gamma"] = ours["gamma"].reshape(())
    count = len(theirs) - len(ours)
    if count:
        ours["weights"] = torch.cat([theirs[f"scalar_parameters.{n}"] for n in range(count)])
    return ours
