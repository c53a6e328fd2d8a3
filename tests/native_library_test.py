from pathlib import Path

import pytest

from elmo_scratch import native_library
from elmo_scratch.native_library import KERNELS, load_library

where_there_is_one = pytest.mark.skipif(not KERNELS.is_file(), reason="nothing was compiled here")


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


@where_there_is_one
def test_a_library_of_another_version_is_done_without_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(native_library, "INTERFACE", native_library.INTERFACE + 1)
    assert load_library(KERNELS) is None
    (message,) = caplog.messages
    assert (
        f"it is of version {native_library.INTERFACE - 1}, not {native_library.INTERFACE}"
        in message
    )
