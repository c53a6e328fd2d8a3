from typing import Dict, Iterator

import pytest
import torch


@pytest.fixture
def one_thread() -> Iterator[None]:
    """For all that follows, until the test changes it; then as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def two_threads(one_thread: None) -> None:
    torch.set_num_threads(2)


@pytest.fixture(params=[1, 2])
def each_number_of_threads(request: pytest.FixtureRequest, one_thread: None) -> None:
    torch.set_num_threads(request.param)


@pytest.fixture(params=["compiled", "plain"])
def each_code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Once with the compiled functions, if there are any, and once without. `COMPILED` of the tests'
    file says which they are: a module, and the name that they have there.
    """
    module, name = request.module.COMPILED
    if request.param == "plain":
        nothing: Dict[torch.dtype, object] = {}
        monkeypatch.setattr(module, name, nothing)
    elif not getattr(module, name):
        pytest.skip("it was not compiled here")
