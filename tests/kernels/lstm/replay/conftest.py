import pytest

from elmo_scratch.kernels.lstm import cuda_graphs


@pytest.fixture
def record_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a processor, where work that is recorded is done anew."""
    monkeypatch.setattr(cuda_graphs, "DEVICES", ("cpu", "cuda"))
