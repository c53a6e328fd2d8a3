"""Files of `torch.save`, whole and checked."""

import pickle
import zipfile
import zlib
from pathlib import Path
from typing import Any, Union

import torch

from elmo_scratch.files.atomic import atomic_write, sync

UNREADABLE = (
    *(OSError, EOFError, RuntimeError, ValueError, LookupError),
    *(pickle.UnpicklingError, zipfile.BadZipFile, zlib.error),
)
"""What reading a damaged file may raise, or one that holds code."""


def reason_of(error: Exception) -> str:
    """
    # Returns

    `str`
        Why a file can't be read, without the advice that PyTorch adds: to run what the file holds.
    """
    return " ".join(str(error).partition(". ")[0].split())


def check_not_compressed(path: Union[str, Path]) -> None:
    """
    # Raises

    ValueError
        If a file holds compressed parts. `torch.save` makes none, and they would take more memory
        than the file tells.
    """
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as file:
            if any(part.compress_type != zipfile.ZIP_STORED for part in file.infolist()):
                raise ValueError("it holds compressed parts")


def read_torch_file(path: Union[str, Path]) -> Any:
    """
    # Returns

    `Any`
        What `torch.save` has written to a file, if its checksums are right. No code in it is run.

    # Raises

    One of `UNREADABLE`
        If they are not, or the file is damaged otherwise or holds code.
    """
    # PyTorch writes them, but doesn't compare them.
    with zipfile.ZipFile(path) as file:
        damaged = file.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"the checksum of {damaged} is wrong")
    return torch.load(path, map_location="cpu", weights_only=True)


def write_torch_file(state: Any, path: Path) -> None:
    """
    Writes a file as `torch.save` does, whole and on the disk before it has its name.

    # Raises

    OSError
        If it can't be written.
    """
    try:
        with atomic_write(path) as part, open(part, "wb") as file:
            torch.save(state, file)
            file.flush()
            sync(part)
    except RuntimeError as error:
        # PyTorch covers the error of the system by one of its own when it closes the file.
        if not isinstance(error.__context__, OSError):
            raise
        raise error.__context__ from None
    sync(path.parent)
