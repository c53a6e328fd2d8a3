import pytest

from elmo_scratch.kernels.lstm.replay import step_recordings


@pytest.fixture
def record_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a processor, where work that is recorded is done anew."""
    monkeypatch.setattr(step_recordings, "DEVICES", ("cpu", "cuda"))
