import shutil
from pathlib import Path
from typing import Any

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.export.plan import check_room, in_words


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
