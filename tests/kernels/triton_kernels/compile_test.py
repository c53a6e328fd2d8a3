"""
Triton's kernels compile for GPUs, also where there is none: no register is kept in slow memory, and
products in bfloat16 run on tensor cores.
"""

import re
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from tests.kernels.triton_kernels.has_triton import IS_INTERPRETED

pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or IS_INTERPRETED, reason="needs Triton: `make test-triton`"
)

SIZES = {"small": (128, 1024), "original": (512, 4096)}
"""The outputs and the memory cells of the released models."""

ROWS = {"num_rows": "i32", "cell_clip": "fp32", "projection_clip": "fp32", "clip": "fp32"}

each_way = pytest.mark.parametrize("capability", [80, 90])
each_dtype = pytest.mark.parametrize("dtype", ["fp32", "bf16"])


def compiled(kernel: Any, types: Dict[str, str], constants: Dict[str, Any], capability: int) -> Any:
    """A kernel for a GPU of some capability, its pointers at multiples of 16 bytes."""
    from triton import compile as compile_kernel
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else types[name] for name in names}
    aligned = {
        (place,): [["tt.divisibility", 16]]
        for place, name in enumerate(names)
        if signature[name].startswith("*")
    }
    places = {(names.index(name),): value for name, value in constants.items()}
    source = ASTSource(kernel, signature, constexprs=places, attrs=aligned)
    return compile_kernel(source, target=GPUTarget("cuda", capability, 32))


def machine_code(kernel: Any, folder: Path) -> str:
    """Its instructions, after checking that no register is kept in memory."""
    import triton

    cubin = folder / "kernel.cubin"
    cubin.write_bytes(kernel.asm["cubin"])
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"

    def dumped(option: str) -> str:
        command = [str(tool), option, str(cubin)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert re.findall(r"STACK:(\d+)", dumped("-res-usage")) == ["0"]
    return dumped("-sass")


@pytest.mark.parametrize("model", SIZES)
@each_dtype
@each_way
def test_steps_of_an_lstm(capability: int, dtype: str, model: str, tmp_path: Path) -> None:
    fused = import_module("elmo_scratch.kernels.triton_kernels.lstm_steps")
    dim, cells = SIZES[model]
    summed = fused.SUMMED_AT_ONCE * (2 if dtype == "bf16" else 1)
    rounded = dict.fromkeys(["share", "weight", "gates", "output", "d_gates"], f"*{dtype}")
    names = ["hidden", "before", "after", "mask", "projected", "d_hidden", "d_output", "d_cell"]
    types = {**ROWS, **rounded, **dict.fromkeys([*names, "d_projected"], "*fp32")}
    least = fused.LEAST_AT_ONCE
    of_cells = dict(CELLS=cells, CELLS_AT_ONCE=least, DIM_AT_ONCE=summed)
    of_outputs = dict(DIM_AT_ONCE=least, ROWS_AT_ONCE=least)
    all_constants: List[Tuple[str, Dict[str, Any]]] = [
        ("_projection", dict(of_outputs, CELLS=cells, CELLS_AT_ONCE=summed, DROPS=True)),
        (
            "_hidden_backward",
            dict(
                of_outputs,
                GATES=4 * cells,
                GATES_OF_A_PART=fused.GATES_OF_A_PART,
                GATES_AT_ONCE=summed,
            ),
        ),
    ]
    for rows in (least, fused.MOST_ROWS_AT_ONCE):
        own = dict(of_cells, ROWS_AT_ONCE=rows)
        all_constants.append(("_gates_and_cells", dict(own, KEEPS_GATES=True)))
        for parts in (1, 4 * cells // fused.GATES_OF_A_PART):
            all_constants.append(("_cells_backward", dict(own, DROPS=True, PARTS=parts)))
    for name, constants in all_constants:
        constants.update(DIM=dim, IS_INTERPRETED=False)
        kernel = compiled(getattr(fused, name), types, constants, capability)
        assert ("HMMA" in machine_code(kernel, tmp_path)) == (dtype == "bf16"), name


@each_dtype
@each_way
def test_convolution(capability: int, dtype: str, tmp_path: Path) -> None:
    fused = import_module("elmo_scratch.kernels.triton_kernels.char_convolution")
    types = {
        **dict.fromkeys(["num_words", "num_filters", "num_blocks", "padding_id"], "i32"),
        **dict.fromkeys(["vectors", "weights"], f"*{dtype}"),
        **dict.fromkeys(["biases", "maxima", "gradients", "of_characters"], "*fp32"),
        **dict(of_weights="*fp32", of_biases="*fp32", ids="*i64", blocks="*i32", windows="*i32"),
    }
    all_constants = dict(
        _maxima=dict(
            CHARACTERS_AT_ONCE=64,
            KEEPS_WINDOWS=True,
            IS_INTERPRETED=False,
            WORDS_AT_ONCE=fused.WORDS_AT_ONCE,
        ),
        _weight_gradients=dict(WORDS_AT_ONCE=fused.WORDS_ADDED_AT_ONCE),
        _character_gradients=dict(PLACES_AT_ONCE=fused.PLACES_AT_ONCE),
    )
    for name, constants in all_constants.items():
        constants.update(
            CHARACTERS=50, DIM=16, DIM_AT_ONCE=16, FILTERS_AT_ONCE=fused.FILTERS_AT_ONCE
        )
        kernel = compiled(getattr(fused, name), types, constants, capability)
        on_tensor_cores = name == "_maxima" and dtype == "bf16"
        assert ("HMMA" in machine_code(kernel, tmp_path)) == on_tensor_cores, name
