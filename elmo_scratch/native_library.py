"""The package's compiled code, which is called by ctypes."""

import ctypes
import logging
import sysconfig
from pathlib import Path
from typing import Any, Dict, List, Optional

import torch

logger = logging.getLogger(__name__)

KERNELS = Path(__file__).parent / "native" / f"kernels{sysconfig.get_config_var('EXT_SUFFIX')}"
"""What setup.py makes of native/, where there is a compiler. It is no module of Python: in a folder
of its own `--include-package` doesn't take it for one."""

INTERFACE = 1
"""That of library.cpp."""

POINTER, SIZE, COUNT = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int

ENDINGS = {torch.float32: "float32", torch.float64: "float64", torch.bfloat16: "bfloat16"}
"""How the names of functions end that are there for several types of numbers."""


def load_library(path: Path) -> Optional[ctypes.CDLL]:
    """
    # Parameters

    path : `Path`
        Of the library.

    # Returns

    `Optional[ctypes.CDLL]`
        `None` where there is no library, or none for this processor. Where there is one that is not
        of this version or can't be loaded, a warning says so too.
    """
    if not path.is_file():
        return None
    try:
        library = ctypes.CDLL(str(path))
        interface, runs_here = library.elmo_scratch_interface(), library.elmo_scratch_runs_here()
    except (OSError, AttributeError) as error:
        problem = str(error)
    else:
        if interface == INTERFACE:
            return library if runs_here else None
        problem = f"it is of version {interface}, not {INTERFACE}"
    logger.warning(
        "Compiled code can't be used, and PyTorch's operations take its place, more slowly: %s: "
        "%s. Installing elmo_scratch again compiles it anew.",
        path,
        problem,
    )
    return None


def functions(
    library: Optional[ctypes.CDLL], name: str, takes: List[Any]
) -> Dict[torch.dtype, Any]:
    """
    # Parameters

    library : `Optional[ctypes.CDLL]`
        A library, if there is one.
    name : `str`
        What comes before the type in the functions' names.
    takes : `List[Any]`
        The types of their parameters, as ctypes knows them.

    # Returns

    `Dict[torch.dtype, Any]`
        The functions, by the type of their numbers; none without a library.
    """
    if library is None:
        return {}
    found = {dtype: library[f"{name}_{ending}"] for dtype, ending in ENDINGS.items()}
    for function in found.values():
        function.argtypes, function.restype = takes, None
    return found


def reaches(tensor: torch.Tensor) -> bool:
    """
    # Returns

    `bool`
        Whether compiled code can read the numbers of `tensor`: what is on other devices, or only
        traced by `torch.compile`, has no address.
    """
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


LIBRARY = load_library(KERNELS)
"""The compiled code of this process, if there is any."""
