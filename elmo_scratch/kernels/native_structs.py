"""The structs of native/structs.h, which says what they hold, by the same names."""

import ctypes
from typing import Any, Dict, List, Type

POINTER, SIZE, COUNT = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int
FLOAT = ctypes.c_float
"""The types of what compiled code takes."""


def _fields(kind: Any, names: str) -> List[Any]:
    """Fields of one type."""
    return [(name, kind) for name in names.split()]


class LstmSizes(ctypes.Structure):
    _fields_ = [
        *_fields(ctypes.POINTER(SIZE), "batch_sizes"),
        *_fields(SIZE, "steps batch cells dim"),
    ]


class LstmForward(ctypes.Structure):
    _fields_ = [
        *_fields(POINTER, "to_gates projection bias gates scale hidden cell after opened"),
        *_fields(POINTER, "projected outputs last_hidden last_cell"),
        *_fields(FLOAT, "cell_clip projection_clip"),
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


class AmxGradientPart(ctypes.Structure):
    _fields_ = [("vectors", POINTER), ("inputs", SIZE), *_fields(POINTER, "packed result")]


class AmxGradients(ctypes.Structure):
    _fields_ = [
        *(("gradients", POINTER), *_fields(SIZE, "rows outputs"), ("sums", POINTER)),
        *(("parts", ctypes.POINTER(AmxGradientPart)), ("num_parts", SIZE)),
    ]


STRUCTS: List[Type[ctypes.Structure]] = [
    *(LstmSizes, LstmForward, LstmBackward, ConvolutionWords, ConvolutionFilters, PanelMatrix),
    *(AmxProduct, AmxWeights, AmxGradientPart, AmxGradients),
]
"""All of them."""


class _Layout(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", SIZE)]


def different_layouts(library: ctypes.CDLL) -> List[str]:
    """
    # Parameters

    library : `ctypes.CDLL`
        Of native/.

    # Returns

    `List[str]`
        The structs that have another size in C++ than here, and the fields with another offset or
        only on one side, such as `LstmSizes.batch`.
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
