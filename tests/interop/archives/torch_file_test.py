import os
from pathlib import Path
from typing import Any, Dict

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


def test_a_place_without_a_folder_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        write_torch_file(STATE, tmp_path / "none" / "state.th")
