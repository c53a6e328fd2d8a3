"""
The tensors of a biLM: checked before memory is taken for it, and loaded; and files of `torch.save`,
read and written whole and checked.
"""

import os
import pickle
import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import Any, Callable, Dict, Union

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.interop.archives.blueprint import BiLmBlueprint, WithoutDrawing
from elmo_scratch.modules import BiLm
from elmo_scratch_compat.bounds import SHARED_TENSORS

LANGUAGE_MODEL = "elmo_scratch_bilm"
"""The registered name of a language model; others of its kind begin so."""

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


def load_weights(bilm: BiLm, state: Tensors, source: Source, prefix: str = BILM_PREFIX) -> None:
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


UNREADABLE = (
    *(OSError, EOFError, RuntimeError, ValueError, LookupError),
    *(pickle.UnpicklingError, zipfile.BadZipFile, zlib.error),
)
"""The errors that reading may raise if a file is damaged or holds code."""


def reason_of(error: Exception) -> str:
    """The reason why a file can't be read, without PyTorch's advice to run the code in it."""
    return " ".join(str(error).partition(". ")[0].split())


def check_not_compressed(path: Union[str, Path]) -> None:
    """
    Raises `ValueError` if a file holds compressed parts. `torch.save` makes none, and they would
    take more memory than the file's size tells.
    """
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as file:
            if any(part.compress_type != zipfile.ZIP_STORED for part in file.infolist()):
                raise ValueError("it holds compressed parts")


def check_plain(state: Any) -> None:
    """
    Raises `ValueError` if a file holds something else than tensors of real numbers by their names,
    with a place in memory for each number.
    """
    if not isinstance(state, dict):
        raise ValueError("what it holds are no tensors by their names")
    for name, tensor in state.items():
        if not isinstance(name, str):
            raise ValueError(f"a tensor has the name {name!r:.40}, which is no text")
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"{name!r:.80} is no tensor")
        kind = str(tensor.layout).removeprefix("torch.").removesuffix("_coo")
        if tensor.is_quantized or tensor.is_complex() or tensor.is_meta:
            kind = str(tensor.dtype if not tensor.is_meta else "meta").removeprefix("torch.")
        if kind != "strided":
            raise ValueError(f"the tensor {name!r:.80} is {kind}; expected plain real numbers")


def check_memory(state: Tensors, path: Union[str, Path]) -> None:
    """
    Raises `ValueError` if tensors would take far more memory than their file: one stored number can
    stand for all numbers of a tensor of any shape.
    """
    size = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    if size > SHARED_TENSORS * os.path.getsize(path):
        raise ValueError(f"its tensors would take {size} bytes, many more than the file has")


def read_torch_file(path: Union[str, Path]) -> Any:
    """
    Loads a file of `torch.save` without running code in it. Raises one of `UNREADABLE` if a
    checksum is wrong, or the file is damaged otherwise or holds code or compressed parts.
    """
    check_not_compressed(path)
    # PyTorch writes checksums, but doesn't compare them.
    with zipfile.ZipFile(path) as file:
        damaged = file.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"the checksum of {damaged} is wrong")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (AssertionError, AttributeError, TypeError) as error:
        # PyTorch makes tensors of whatever arguments a file has for them.
        raise ValueError(f"what it holds makes no tensors ({error})") from None


def read_tensors(path: Union[str, Path]) -> Dict[str, torch.Tensor]:
    """
    Loads the `state_dict()` of a module, saved by any release of PyTorch, without running code in
    it. Tensors that lay on a GPU come on the processor. Raises `ValueError` with the reason if the
    file is damaged or holds something else, or tensors that would take far more memory than it.
    """
    try:
        if zipfile.is_zipfile(path):
            state = read_torch_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    # A damaged file of the form before PyTorch 1.6 raises nearly all kinds of errors.
    except Exception as error:
        raise ValueError(reason_of(error) or type(error).__name__) from None
    if not isinstance(state, dict) or not all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor) for name, tensor in state.items()
    ):
        raise ValueError("it holds something else than tensors with names")
    check_memory(state, path)
    return state


def write_torch_file(state: Any, path: Path) -> None:
    """
    Saves by `torch.save` to a file that gets its name once it is whole and on the disk. Raises
    `OSError` if it can't be written.
    """
    try:
        with atomic_write(path) as part, open(part, "wb") as file:
            torch.save(state, file)
    except RuntimeError as error:
        # PyTorch hides the system's error behind its own when it closes the file.
        if not isinstance(error.__context__, OSError):
            raise
        raise error.__context__ from None
