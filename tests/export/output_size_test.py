import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.export import ExportSettings, InputText
from elmo_scratch.export.plan import (
    BYTES_A_DATA_SET,
    Span,
    check_room,
    estimated_size,
    in_words,
)


@pytest.mark.parametrize(
    "num_bytes, words",
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 KB"), (2.5e9, "2.5 GB"), (3e18, "3000.0 PB")],
)
def test_a_size_has_a_unit(num_bytes: float, words: str) -> None:
    assert in_words(num_bytes) == words


def test_an_output_for_which_there_is_no_room_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def usage(_: Any) -> Any:
        return shutil._ntuple_diskusage(100, 50, 50)  # type: ignore[attr-defined]

    monkeypatch.setattr(shutil, "disk_usage", usage)
    check_room(tmp_path / "x.hdf5", 25, is_compressed=False)
    check_room(tmp_path / "x.hdf5", 51, is_compressed=True)
    check_room(tmp_path / "x.hdf5", 30, num_copies=2, num_there=10, is_compressed=False)
    assert not caplog.records
    check_room(tmp_path / "x.hdf5", 50, is_compressed=False)
    assert "50 bytes are free there, not twice what the output takes" in caplog.text
    with pytest.raises(ConfigurationError, match="about 30 bytes, and twice that while.*50 bytes"):
        check_room(tmp_path / "x.hdf5", 30, num_copies=2, num_there=9, is_compressed=False)
    with pytest.raises(ConfigurationError, match="would take about 51 bytes, but only 50 bytes"):
        check_room(tmp_path / "x.hdf5", 51, is_compressed=False)


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, 7 * 3 * 10 * 4),
        ({"kept": "top"}, 7 * 10 * 4),
        ({"dtype": "float16"}, 7 * 3 * 10 * 2),
        ({"pool": "max"}, 2 * 3 * 10 * 4),
    ],
)
def test_the_size_is_that_of_the_vectors(settings: Dict[str, Any], expected: int) -> None:
    text = InputText("text", ["the river", "it was a late morning"])
    layers: Any = SimpleNamespace(num_layers=3, width=10)
    size = estimated_size(text, Span(0, 2), layers, ExportSettings(**settings))
    assert size == expected + 2 * BYTES_A_DATA_SET
