import ctypes
import shutil
from pathlib import Path
from typing import Any, List

import pytest

from elmo_scratch.kernels import library as native_structs
from elmo_scratch.kernels.library import (
    COUNT,
    KERNELS,
    LIBRARY,
    POINTER,
    SIZE,
    STRUCTS,
    different_layouts,
    load_library,
)

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="nothing was compiled here")

NUMBERS = ("steps", "batch", "cells", "dim", "gate_stride", "opened_stride")
SIZES = [("batch_sizes", POINTER), *((name, SIZE) for name in NUMBERS)]


def with_other_sizes(fields: List[Any]) -> List[Any]:
    """`STRUCTS`, but with other fields of `LstmSizes`."""
    other = type("LstmSizes", (ctypes.Structure,), {"_fields_": fields})
    return [other, *STRUCTS[1:]]


@pytest.fixture
def library() -> ctypes.CDLL:
    assert LIBRARY is not None
    return LIBRARY


def test_structs_are_laid_out_as_in_the_library(library: ctypes.CDLL) -> None:
    assert different_layouts(library) == []
    assert len(STRUCTS) == 12


@pytest.mark.parametrize(
    "fields, different",
    [
        (SIZES, []),
        (SIZES[:-1], ["LstmSizes", "LstmSizes.opened_stride"]),
        ([*SIZES, ("last", SIZE)], ["LstmSizes", "LstmSizes.last"]),
        ([SIZES[0], SIZES[2], SIZES[1], *SIZES[3:]], ["LstmSizes.batch", "LstmSizes.steps"]),
        ([*SIZES[:3], ("num_cells", SIZE), *SIZES[4:]], ["LstmSizes.cells", "LstmSizes.num_cells"]),
        (
            [*SIZES[:5], ("gate_stride", COUNT), ("opened_stride", COUNT)],
            ["LstmSizes", "LstmSizes.opened_stride"],
        ),
    ],
    ids=["the same", "one missing", "one more", "exchanged", "another name", "narrower"],
)
def test_a_wrong_mirror_is_seen(
    fields: List[Any],
    different: List[str],
    library: ctypes.CDLL,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native_structs, "STRUCTS", with_other_sizes(fields))
    assert different_layouts(library) == different


def test_a_struct_without_mirror_is_seen(
    library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_structs, "STRUCTS", STRUCTS[1:])
    assert different_layouts(library)[0] == "LstmSizes"


def test_a_library_with_other_structs_is_done_without_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copy(KERNELS, tmp_path)
    assert load_library(tmp_path / KERNELS.name) is not None
    monkeypatch.setattr(native_structs, "STRUCTS", with_other_sizes(SIZES[:-1]))
    assert load_library(tmp_path / KERNELS.name) is None
    (message,) = caplog.messages
    assert "LstmSizes.opened_stride" in message and "Installing elmo_scratch again" in message
