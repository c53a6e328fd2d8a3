"""The tensors of a biLM: checked before memory is taken for it, and loaded."""

from os import PathLike
from typing import Any, Callable, Dict, Union

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.archives.blueprint import BiLmBlueprint, WithoutDrawing
from elmo_scratch.interop.archives.torch_file import reason_of
from elmo_scratch.modules import BiLm

Source = Union[str, PathLike]
Tensors = Dict[str, torch.Tensor]

BILM_PREFIX, SOFTMAX_PREFIX = "bilm.", "softmax."
"""The prefixes of the tensor names of the language model's parts."""

NO_MODULE = (AttributeError, LookupError, OverflowError, RuntimeError, TypeError, ValueError)
"""The errors of modules that are made of settings that make no sense."""


def type_of(tensor: torch.Tensor) -> str:
    """PyTorch's name for the type of a tensor's numbers."""
    return str(tensor.dtype).removeprefix("torch.")


def part_of(state: Tensors, prefix: str) -> Tensors:
    """The tensors whose names begin with a prefix, by their names without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in state.items()
        if name.startswith(prefix)
    }


def planned_bilm(
    build: Callable[[], BiLm], plan: Dict[str, Any], num_tensors: int, source: Source
) -> BiLm:
    """
    Builds a biLM of shapes alone, without memory for its numbers, by a method of the blueprint with
    the config `plan`. Raises `ConfigurationError` if the config makes no sense, or asks for more
    layers than there are tensors.
    """
    encoder = plan.get("token_encoder")
    parts: Dict[str, Any] = encoder if isinstance(encoder, dict) else {}
    filters = parts.get("filters")
    counts = {
        "num_layers": plan.get("num_layers"),
        "num_highway": parts.get("num_highway"),
        "filters": len(filters) if isinstance(filters, list) else 0,
    }
    for name, asked in counts.items():
        if isinstance(asked, int) and asked > num_tensors:
            raise ConfigurationError(
                f"{source}: the weights do not fit the config. Its `{name}` asks for {asked} "
                f"layers or convolutions, but there are {num_tensors} tensors"
            )
    try:
        with torch.device("meta"), WithoutDrawing():
            return build()
    except NO_MODULE as error:
        raise ConfigurationError(
            f"{source}: its config describes no biLM: {reason_of(error)}"
        ) from None


def check_sizes(
    blueprint: BiLmBlueprint, state: Tensors, source: Source, prefix: str = BILM_PREFIX
) -> None:
    """
    Checks the names, types and shapes of a biLM's weights against its config, before memory is
    taken for it. `prefix` stands before the names in the messages. Raises `ConfigurationError` if a
    weight is missing, of another shape or without fractions, or as `planned_bilm` does.
    """
    planned = planned_bilm(blueprint.build, blueprint.config, len(state), source)
    for name, weight in planned.named_parameters():
        if name in state and not state[name].is_floating_point():
            raise ConfigurationError(
                f"{source}: the weights do not fit the config. {prefix}{name} holds numbers of the "
                f"type {type_of(state[name])}, where numbers with a fraction were expected"
            )
        if name in state and state[name].shape != weight.shape:
            raise ConfigurationError(
                f"{source}: the weights do not fit the config. {prefix}{name} has the shape "
                f"{tuple(state[name].shape)}, where {tuple(weight.shape)} was expected"
            )
        if name not in state:
            raise ConfigurationError(
                f"{source}: the weights do not fit the config. {prefix}{name} is missing"
            )


def fill(bilm: BiLm, state: Tensors, source: Source, prefix: str = BILM_PREFIX) -> None:
    """
    Loads weights into a biLM. Raises `ConfigurationError` if they don't fit or are not finite.
    """
    try:
        bilm.load_state_dict(state)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"{source}: the weights do not fit the config. {reason}") from None
    for name, weight in bilm.named_parameters():
        if not weight.isfinite().all():
            raise ConfigurationError(
                f"{source}: {prefix}{name} holds numbers that are not finite; such weights come of "
                "a training that diverged"
            )
