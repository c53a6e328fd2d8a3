import os
from collections import OrderedDict
from pathlib import Path
from typing import Any, Callable, Dict, Tuple
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import torch

from elmo_scratch.interop.archives.weights import (
    UNREADABLE,
    read_torch_file,
    reason_of,
    write_torch_file,
)

STATE: Dict[str, Any] = {"weight": torch.arange(5.0), "name": "a", "places": [1, 2]}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_torch_file(STATE, tmp_path / "state.th")
    read = read_torch_file(tmp_path / "state.th")
    assert torch.equal(read.pop("weight"), STATE["weight"])
    assert read == {"name": "a", "places": [1, 2]}
    assert [file.name for file in tmp_path.iterdir()] == ["state.th"]


@pytest.mark.parametrize("damage", ["empty", "half", "changed", "text", "gone"])
def test_a_damaged_file_is_an_error_that_is_known(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "state.th"
    write_torch_file(STATE, path)
    content = path.read_bytes()
    damaged = {
        "empty": b"",
        "half": content[: len(content) // 2],
        "changed": content.replace(b"weight", b"weighs"),
        "text": b"this is no state",
    }
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(damaged[damage])
    with pytest.raises(UNREADABLE):
        read_torch_file(path)


def test_code_is_not_run_and_nobody_is_advised_to_run_it(tmp_path: Path) -> None:
    class Code:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "run"),)

    torch.save({"weight": Code()}, tmp_path / "state.th")
    with pytest.raises(UNREADABLE) as raised:
        read_torch_file(tmp_path / "state.th")
    assert not (tmp_path / "run").exists()
    assert "weights_only" in str(raised.value)
    assert "to `False`" not in reason_of(raised.value)


def test_compressed_parts_are_not_unpacked(tmp_path: Path) -> None:
    write_torch_file(STATE, tmp_path / "state.th")
    with (
        ZipFile(tmp_path / "state.th") as plain,
        ZipFile(tmp_path / "packed.th", "w", ZIP_DEFLATED) as packed,
    ):
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    with pytest.raises(ValueError, match="it holds compressed parts"):
        read_torch_file(tmp_path / "packed.th")


@pytest.mark.parametrize(
    "function, given",
    [
        (OrderedDict, (5,)),
        (torch._utils._rebuild_tensor_v2, (5,)),  # type: ignore[no-untyped-call]
        (torch._utils._rebuild_tensor_v2, ("a", 0, (1,), (1,), False, None)),
    ],
)
def test_what_makes_no_tensor_is_an_error_that_is_known(
    function: Callable[..., Any], given: Tuple[Any, ...], tmp_path: Path
) -> None:
    class Made:
        def __reduce__(self) -> Any:
            return function, given

    torch.save({"weight": Made()}, tmp_path / "state.th")
    with pytest.raises(ValueError, match="what it holds makes no tensors"):
        read_torch_file(tmp_path / "state.th")


def test_a_place_without_a_folder_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        write_torch_file(STATE, tmp_path / "none" / "state.th")
