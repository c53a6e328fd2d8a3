from typing import Iterator

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
