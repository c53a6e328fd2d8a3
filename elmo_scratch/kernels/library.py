"""
Loads the compiled library by ctypes, checks that its structs match those declared here, and packs
weights in panels, the layout that it reads.
"""

import ctypes
import logging
import os
import platform
import sys
import zlib
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Type

import torch
from torch.autograd import forward_ad

from elmo_scratch.kernels.memory import buffer_pool

POINTER, SIZE, COUNT = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int
FLOAT = ctypes.c_float
"""The argument types of compiled code."""


def _fields(kind: Any, names: str) -> List[Any]:
    """Fields of one type, named in a string."""
    return [(name, kind) for name in names.split()]


class LstmSizes(ctypes.Structure):
    _fields_ = [
        *_fields(ctypes.POINTER(SIZE), "batch_sizes"),
        *_fields(SIZE, "steps batch cells dim gate_stride opened_stride"),
    ]


class LstmForward(ctypes.Structure):
    _fields_ = [
        *_fields(POINTER, "to_gates projection bias gates scale hidden cell after opened"),
        *_fields(POINTER, "projected outputs last_hidden last_cell"),
        *_fields(FLOAT, "cell_clip projection_clip"),
    ]


class LstmLayer(ctypes.Structure):
    _fields_ = _fields(POINTER, "from_inputs to_gates projection bias")


class LstmLayers(ctypes.Structure):
    _fields_ = [
        ("layers", ctypes.POINTER(LstmLayer)),
        *_fields(SIZE, "num_layers positions_at_once"),
        *_fields(POINTER, "inputs outputs last_hidden last_cell"),
        *_fields(POINTER, "rounded_inputs rounded_outputs gates opened hidden after"),
        *_fields(FLOAT, "cell_clip projection_clip"),
        ("adds_inputs", COUNT),
    ]


class LstmBackward(ctypes.Structure):
    _fields_ = [
        *_fields(POINTER, "from_gates projection gates scale cell after projected d_outputs"),
        *_fields(POINTER, "d_gates d_projected d_hidden d_cell"),
        *_fields(FLOAT, "cell_clip projection_clip"),
    ]


class ConvolutionWords(ctypes.Structure):
    _fields_ = [
        *_fields(POINTER, "characters lengths"),
        *_fields(SIZE, "number positions dim most_characters filters"),
    ]


class ConvolutionFilters(ctypes.Structure):
    _fields_ = [
        *_fields(POINTER, "panels weights bias d_weights"),
        *_fields(SIZE, "inputs width number first"),
    ]


class PanelMatrix(ctypes.Structure):
    _fields_ = [
        *_fields(POINTER, "numbers"),
        *_fields(SIZE, "rows columns"),
        *_fields(COUNT, "is_turned is_of_gates"),
    ]


class AmxProduct(ctypes.Structure):
    _fields_ = [
        *_fields(POINTER, "rows weights bias summand result"),
        *_fields(SIZE, "num_rows inputs outputs"),
    ]


class AmxWeights(ctypes.Structure):
    _fields_ = [("numbers", POINTER), *_fields(SIZE, "outputs inputs"), ("is_turned", COUNT)]


class GradientPart(ctypes.Structure):
    _fields_ = [("vectors", POINTER), ("inputs", SIZE), *_fields(POINTER, "packed result")]


class GradientProducts(ctypes.Structure):
    _fields_ = [
        *(("gradients", POINTER), *_fields(SIZE, "rows outputs"), ("sums", POINTER)),
        *(("parts", ctypes.POINTER(GradientPart)), ("num_parts", SIZE)),
    ]


STRUCTS: List[Type[ctypes.Structure]] = [
    *(LstmSizes, LstmForward, LstmLayer, LstmLayers, LstmBackward),
    *(ConvolutionWords, ConvolutionFilters, PanelMatrix),
    *(AmxProduct, AmxWeights, GradientPart, GradientProducts),
]
"""All structs that are passed to the library."""


class _Layout(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", SIZE)]


def different_layouts(library: ctypes.CDLL) -> List[str]:
    """
    The structs whose size differs between C++ and Python, and the fields, such as
    `LstmSizes.batch`, whose offset differs or that exist on one side only.
    """
    library.elmo_scratch_layouts.restype = ctypes.POINTER(_Layout)
    theirs: Dict[str, int] = {}
    for layout in library.elmo_scratch_layouts():
        if layout.name is None:
            break
        theirs[layout.name.decode()] = layout.value
    ours = {struct.__name__: ctypes.sizeof(struct) for struct in STRUCTS}
    for struct in STRUCTS:
        for name, *_ in struct._fields_:
            ours[f"{struct.__name__}.{name}"] = getattr(struct, name).offset
    return sorted({name for name, _ in ours.items() ^ theirs.items()})


logger = logging.getLogger(__name__)

KERNELS = Path(__file__).parent / "native" / "kernels.so"
"""
The library that setup.py builds from native/, where there is a compiler. It is not a Python module:
in a folder of its own, `--include-package` doesn't try to import it.
"""

SWITCH = "ELMO_SCRATCH_COMPILED_CODE"
"""`0` disables the compiled code; `avx2`, `avx512` or `bfloat16` caps the instruction set."""

SOURCES = ("*.cpp", "*.h")
"""The library's source files. They lie beside it only if the package runs from its checkout."""


class Instructions(IntEnum):
    """The instruction sets that compiled code uses, each including the ones before it."""

    COMMON = 0
    """No code that is compiled for particular processors."""

    AVX2 = 1
    """Registers of eight floats, on every x86-64 processor that the library runs on."""

    AVX512 = 2
    """Registers of sixteen floats."""

    BFLOAT16 = 3
    """Products in bfloat16."""

    TILES = 4
    """Products in bfloat16 by AMX tiles."""


def find_library(path: Path) -> Path:
    """
    The library at `path`. A checkout that nothing was compiled in, from where Python imports the
    package although it is installed elsewhere too, takes the library of that installation.
    """
    if path.is_file() or not _sources(path.parent):
        return path
    installed = (Path(folder, *path.parts[-4:]) for folder in sys.path)
    return next(filter(Path.is_file, installed), path)


def load_library(path: Path, sources: Optional[Path] = None) -> Optional[ctypes.CDLL]:
    """
    Loads the library at `path`. `None` if there is no file or it doesn't support this processor.
    `None`, with a warning, if it can't be loaded, is older than its sources, or has other struct
    layouts. The sources lie in the folder `sources`, by default beside the library.
    """
    if not path.is_file():
        return None
    try:
        library = ctypes.CDLL(str(path))
        problem = _problem(library, sources or path.parent)
        if problem is None:
            return library if library.elmo_scratch_runs_here() else None
    except (OSError, AttributeError) as error:
        problem = str(error)
    logger.warning(
        "Compiled code can't be used, and PyTorch's operations take its place, more slowly: %s: "
        "%s. %s",
        path,
        problem,
        "The system's package libgomp1 has this file."
        if "libgomp" in problem
        else "Installing elmo_scratch again compiles it anew.",
    )
    return None


@lru_cache(maxsize=None)
def warn_of_missing_code() -> None:
    """Warns, once a process, that code `IS_MISSING`, and says how to get it."""
    if _sources(KERNELS.parent):
        way_out = f"`python setup.py build_ext --inplace` in {KERNELS.parents[3]} compiles it"
    else:
        way_out = (
            "install g++, then elmo-scratch again (`pip install --force-reinstall --no-deps "
            "--no-cache-dir ...`), or install its wheel, which has it"
        )
    logger.warning(
        "Compiled code is missing, and PyTorch's operations take its place, more slowly: "
        "there is no %s. To have it, %s. %s=0 does without it, and without this warning.",
        KERNELS,
        way_out,
        SWITCH,
    )


def allowed_instructions(library: Optional[ctypes.CDLL], most: str) -> Instructions:
    """
    The best instruction set that the processor and the library both have, capped by the name
    `most`; an unknown name is no cap.
    """
    best = Instructions.COMMON if library is None else library.elmo_scratch_instructions()
    return min(Instructions(best), Instructions.__members__.get(most.upper(), Instructions.TILES))


def functions(
    library: Optional[ctypes.CDLL], name: str, dtypes: Sequence[torch.dtype], takes: List[Any]
) -> Dict[torch.dtype, Any]:
    """
    The functions `name`_`dtype` of the library, with argument types `takes`; empty without a
    library.
    """
    if library is None:
        return {}
    found = {dtype: library[f"{name}_{str(dtype).split('.')[1]}"] for dtype in dtypes}
    for function in found.values():
        function.argtypes, function.restype = takes, None
    return found


def simd_functions(
    library: Optional[ctypes.CDLL], name: str, instructions: Instructions, takes: List[Any]
) -> Dict[torch.dtype, Any]:
    """
    The best functions called `name` for an instruction set, by the precision of their products,
    with argument types `takes`. Empty without a library or below AVX2.
    """
    if library is None or instructions < Instructions.AVX2:
        return {}
    best = min(instructions, Instructions.AVX512)
    found = {torch.float32: library[f"{name}_float32_{Instructions(best).name.lower()}"]}
    if instructions >= Instructions.BFLOAT16:
        found[torch.bfloat16] = library[f"{name}_bfloat16"]
    for function in found.values():
        function.argtypes, function.restype = takes, None
    return found


def is_plain(*tensors: torch.Tensor, on: Optional[str] = None) -> bool:
    """
    Whether other code may stand in for PyTorch operations on `tensors`: nothing watches, traces,
    differentiates or replaces them. With a type of devices, such as "cpu", they must also be on
    such a device, where other code finds them in memory.
    """
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    if torch._C._len_torch_dispatch_stack() > 0 or forward_ad._current_level >= 0:
        return False
    for tensor in tensors:
        if (
            type(tensor) not in (torch.Tensor, torch.nn.Parameter)
            or (on is not None and tensor.device.type != on)
            or tensor.layout != torch.strided
            or tensor.is_neg()
            or torch._C._functorch.is_functorch_wrapped_tensor(tensor)
            or torch._C._functorch.is_legacy_batchedtensor(tensor)
        ):
            return False
    return True


def _problem(library: ctypes.CDLL, sources: Path) -> Optional[str]:
    """The reason why a library can't be used, or `None`."""
    if _checksum(sources) not in (None, library.elmo_scratch_checksum() % 2**32):
        return "the files that it is made of have changed"
    different = different_layouts(library)
    if different:
        return f"structs are laid out otherwise than in Python: {', '.join(different)}"
    return None


def _sources(folder: Path) -> List[Path]:
    """The sources in a folder, in the order in which setup.py lists them."""
    return [path for pattern in SOURCES for path in sorted(folder.rglob(pattern))]


def _checksum(folder: Path) -> Optional[int]:
    """The checksum of the sources in a folder, as setup.py computes it; `None` without sources."""
    paths = _sources(folder)
    return zlib.crc32(b"".join(path.read_bytes() for path in paths)) if paths else None


_IS_ALLOWED = os.environ.get(SWITCH) != "0"
_FOUND = find_library(KERNELS)

LIBRARY = load_library(_FOUND, sources=KERNELS.parent) if _IS_ALLOWED else None
"""The compiled code of this process, or `None`."""

IS_MISSING = (
    _IS_ALLOWED
    and not _FOUND.is_file()
    and (sys.platform, platform.machine()) == ("linux", "x86_64")
)
"""Whether nothing was compiled, on a machine that compiled code serves, and nobody disabled it."""

INSTRUCTIONS = allowed_instructions(LIBRARY, os.environ.get(SWITCH, ""))
"""The instruction set in use: this processor's, capped by the environment variable."""

HAS_TILES = INSTRUCTIONS == Instructions.TILES
"""Whether compiled code uses AMX tiles."""


OUTPUTS_TOGETHER = 64
"""Outputs of a panel; the last panel is padded with zeros."""

INPUTS_TOGETHER = 32
"""
Rounded weights in panels must have a multiple of so many inputs: AMX tiles read so many at once.
"""


_DTYPES = {torch.float32: Instructions.AVX2, torch.bfloat16: Instructions.BFLOAT16}
"""The precisions of products for which there are panels, and the instructions that read them."""

PACK = functions(
    LIBRARY,
    "pack_panels",
    [dtype for dtype, needed in _DTYPES.items() if INSTRUCTIONS >= needed],
    [ctypes.POINTER(PanelMatrix), POINTER, COUNT, COUNT],
)


def pack_weights(
    weight: torch.Tensor,
    dtype: torch.dtype,
    has_tiles: bool,
    *,
    is_turned: bool = False,
    is_of_gates: bool = False,
) -> torch.Tensor:
    """
    Packs a float32 matrix of shape `(rows, columns)`. The result has the shape `(outputs, inputs)`,
    with padded outputs, and the type `dtype`, the precision of products.

    By default rows are outputs; with `is_turned`, columns are. With `is_of_gates` the rows are the
    gates of an LSTM, and a panel holds all four gates of 16 cells. `has_tiles` packs for AMX tiles.
    """
    weight = weight.contiguous()
    outputs, inputs = reversed(weight.shape) if is_turned else weight.shape
    packed = buffer_pool.empty((outputs + -outputs % OUTPUTS_TOGETHER, inputs), dtype)
    matrix = PanelMatrix(weight.data_ptr(), *weight.shape, is_turned, is_of_gates)
    PACK[dtype](ctypes.byref(matrix), packed.data_ptr(), torch.get_num_threads(), has_tiles)
    return packed
