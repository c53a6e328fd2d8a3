"""Reads and writes files of `torch.save`, whole and checked."""

import pickle
import zipfile
import zlib
from pathlib import Path
from typing import Any, Dict, Union

import torch

from elmo_scratch.files.atomic import atomic_write

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


def read_torch_file(path: Union[str, Path]) -> Any:
    """
    Loads a file of `torch.save` without running code in it. Raises one of `UNREADABLE` if a
    checksum is wrong, or the file is damaged otherwise or holds code.
    """
    # PyTorch writes checksums, but doesn't compare them.
    with zipfile.ZipFile(path) as file:
        damaged = file.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"the checksum of {damaged} is wrong")
    return torch.load(path, map_location="cpu", weights_only=True)


def read_tensors(path: Union[str, Path]) -> Dict[str, torch.Tensor]:
    """
    Loads the `state_dict()` of a module, saved by any release of PyTorch, without running code in
    it. Tensors that lay on a GPU come on the processor. Raises `ValueError` with the reason if the
    file is damaged or holds something else.
    """
    try:
        check_not_compressed(path)
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
