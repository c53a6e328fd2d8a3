import ctypes
import shutil
import sys
from pathlib import Path
from runpy import run_path
from typing import List, Optional
from unittest.mock import Mock

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.flop_counter import FlopCounterMode

from elmo_scratch.kernels import library
from elmo_scratch.kernels.library import (
    INSTRUCTIONS,
    KERNELS,
    LIBRARY,
    SWITCH,
    Instructions,
    allowed_instructions,
    find_library,
    functions,
    is_plain,
    load_library,
    simd_functions,
    warn_of_missing_code,
)
from elmo_scratch.kernels.lstm import function
from elmo_scratch.modules import ProjectedLstm
from elmo_scratch.modules.sequences import PackedVectors

where_there_is_one = pytest.mark.skipif(not KERNELS.is_file(), reason="nothing was compiled here")


def make_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_library_that_is_not_there_is_done_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert load_library(tmp_path / "none.so") is None
    assert not caplog.messages


@where_there_is_one
def test_a_library_that_cannot_be_loaded_is_done_without_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "torn.so").write_bytes(KERNELS.read_bytes()[:100])
    assert load_library(tmp_path / "torn.so") is None
    (message,) = caplog.messages
    assert str(tmp_path / "torn.so") in message and "Installing elmo_scratch again" in message


def test_the_package_of_the_system_is_named_that_has_openmp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A wheel leaves OpenMP's library to PyTorch, and a build of PyTorch may have another."""
    error = OSError("libgomp.so.1: cannot open shared object file: No such file or directory")
    monkeypatch.setattr(ctypes, "CDLL", Mock(side_effect=error))
    assert load_library(make_file(tmp_path / "kernels.so")) is None
    (message,) = caplog.messages
    assert message.endswith("The system's package libgomp1 has this file.")


@where_there_is_one
@pytest.mark.parametrize("changed", ["maximum.cpp", "amx/tiles.h"])
def test_a_library_that_is_older_than_its_sources_is_done_without_and_said(
    changed: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library = tmp_path / KERNELS.name
    shutil.copy(KERNELS, library)
    # Alone, as it is installed, it is trusted.
    assert load_library(library) is not None
    libraries = shutil.ignore_patterns("*.so")
    shutil.copytree(KERNELS.parent, tmp_path, ignore=libraries, dirs_exist_ok=True)
    assert load_library(library) is not None
    with (tmp_path / changed).open("a") as file:
        file.write("// Another line.")
    assert load_library(library) is None
    (message,) = caplog.messages
    assert "the files that it is made of have changed" in message


@where_there_is_one
def test_a_source_that_cannot_be_read_is_done_without_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as the link that an editor leaves beside a file that it changes."""
    library = tmp_path / KERNELS.name
    shutil.copy(KERNELS, library)
    (tmp_path / ".#maximum.cpp").symlink_to("nowhere")
    assert load_library(library) is None
    (message,) = caplog.messages
    assert ".#maximum.cpp" in message and "Installing elmo_scratch again" in message


def test_a_checkout_takes_the_library_of_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, installed = (
        tmp_path / folder / KERNELS.relative_to(KERNELS.parents[3])
        for folder in ("checkout", "site-packages")
    )
    make_file(installed)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "site-packages")])
    # Where there are no sources there is no checkout, and nothing to compare.
    assert find_library(checkout) == checkout
    make_file(checkout.parent / "maximum.cpp")
    assert find_library(checkout) == installed
    make_file(checkout)
    assert find_library(checkout) == checkout


@where_there_is_one
def test_the_library_of_an_installation_is_of_the_checkouts_sources(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(
        KERNELS.parent, tmp_path, ignore=shutil.ignore_patterns("*.so"), dirs_exist_ok=True
    )
    assert load_library(KERNELS, sources=tmp_path) is not None
    make_file(tmp_path / "maximum.cpp").write_text("// Another one.")
    assert load_library(KERNELS, sources=tmp_path) is None
    (message,) = caplog.messages
    assert "the files that it is made of have changed" in message


@pytest.mark.parametrize(
    "source, way_out",
    [("maximum.cpp", "`python setup.py build_ext --inplace` in "), (None, "install g++, then")],
)
def test_missing_code_is_said_once_with_the_way_to_it(
    source: Optional[str],
    way_out: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(library, "KERNELS", tmp_path / "elmo_scratch/kernels/native/kernels.so")
    if source is not None:
        make_file(library.KERNELS.parent / source)
    monkeypatch.setattr(function, "IS_MISSING", True)
    warn_of_missing_code.cache_clear()
    lstm = ProjectedLstm(2, 3, 5).double()  # there is compiled code for float32 alone
    for _ in range(2):
        lstm(PackedVectors(torch.ones(7, 2).double(), [1] * 7))
    (message,) = caplog.messages
    assert way_out in message and f"{SWITCH}=0" in message


@where_there_is_one
@pytest.mark.parametrize("value, is_used", [(None, True), ("1", True), ("0", False)])
def test_a_variable_of_the_environment_does_without_it(
    value: Optional[str], is_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    if value is not None:
        monkeypatch.setenv(SWITCH, value)
    # Another copy of the module, imported in this environment.
    names = run_path(library.__file__)
    assert (names["LIBRARY"] is not None) == is_used
    assert not names["IS_MISSING"]


def test_functions_are_none_without_a_library() -> None:
    assert functions(None, "maxima", [torch.float32], []) == {}


def test_ordinary_tensors_are_reached() -> None:
    weight = torch.nn.Parameter(torch.zeros(2))
    assert is_plain(torch.zeros(2), weight, torch.zeros(3, 2).t(), on="cpu")


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(2, device="meta"),
        torch._neg_view(torch.zeros(2)),
        torch.zeros(2).to_sparse(),
        TwoTensor(torch.zeros(2), torch.zeros(2)),
    ],
    ids=["no numbers", "numbers to be negated", "sparse", "another class"],
)
def test_tensors_that_are_not_what_they_seem_are_not_reached(tensor: torch.Tensor) -> None:
    assert not is_plain(torch.zeros(2), tensor, on="cpu")


def test_nothing_is_reached_while_operations_are_watched_or_traced() -> None:
    answers: List[bool] = []

    def ask(numbers: torch.Tensor) -> torch.Tensor:
        answers.append(is_plain(numbers, on="cpu"))
        return numbers * 2

    torch.jit.trace(ask, torch.ones(2), check_trace=False)
    torch.vmap(ask)(torch.ones(2, 2))
    torch.func.grad(lambda numbers: ask(numbers).sum())(torch.ones(2))
    torch.func.jvp(ask, (torch.ones(2),), (torch.ones(2),))
    with FakeTensorMode():
        ask(torch.ones(2))
    with FlopCounterMode(display=False):
        ask(torch.ones(2))
    with forward_ad.dual_level():
        ask(forward_ad.make_dual(torch.ones(2), torch.ones(2)))
    torch.compile(ask, backend="eager")(torch.ones(2))
    assert answers == [False] * 8


@pytest.mark.skipif(LIBRARY is None, reason="nothing was compiled here")
def test_no_better_instructions_are_used_than_are_allowed() -> None:
    best = allowed_instructions(LIBRARY, "")
    for most in Instructions:
        assert allowed_instructions(LIBRARY, most.name.lower()) == min(most, best)
    assert allowed_instructions(LIBRARY, "1") == best
    assert allowed_instructions(None, "tiles") == Instructions.COMMON


@pytest.mark.skipif(INSTRUCTIONS < Instructions.BFLOAT16, reason="not all of it runs here")
def test_functions_are_those_of_the_best_instructions() -> None:
    def found(instructions: Instructions) -> List[str]:
        known = simd_functions(LIBRARY, "read_forward", instructions, [])
        assert all(function.argtypes == [] for function in known.values())
        return [function.__name__.removeprefix("read_forward_") for function in known.values()]

    assert found(Instructions.COMMON) == []
    assert found(Instructions.AVX2) == ["float32_avx2"]
    assert found(Instructions.AVX512) == ["float32_avx512"]
    for instructions in (Instructions.BFLOAT16, Instructions.TILES):
        assert found(instructions) == ["float32_avx512", "bfloat16"]
    assert simd_functions(None, "read_forward", Instructions.TILES, []) == {}
