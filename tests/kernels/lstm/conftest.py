import pytest

from elmo_scratch.kernels.lstm import cells


@pytest.fixture(params=["compiled", "plain"])
def each_memory_cells(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with the memory cells of compiled code, if there are any, and once without."""
    if request.param == "plain":
        monkeypatch.setattr(cells, "COMPILED", None)
    elif cells.COMPILED is None:
        pytest.skip("the memory cells were not compiled here")
