import io
import random
from typing import Tuple

import numpy
import pytest
import torch

from elmo_scratch.training.random_states import random_state, set_random_state

CPU = torch.device("cpu")


def draw() -> Tuple[float, ...]:
    # A second normal number is kept by both until it is asked for.
    return random.gauss(0, 1), numpy.random.normal(), torch.rand(()).item(), random.random()


def test_the_same_numbers_follow_again() -> None:
    draw()
    state = random_state(CPU)
    drawn = [draw() for _ in range(1000)]
    set_random_state(state, CPU)
    assert [draw() for _ in range(1000)] == drawn


def test_a_state_is_read_from_a_file_without_running_code() -> None:
    draw()
    state, file = random_state(CPU), io.BytesIO()
    torch.save(state, file)
    drawn = draw()
    file.seek(0)
    set_random_state(torch.load(file, weights_only=True), CPU)
    assert draw() == drawn


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_same_numbers_of_a_gpu_follow_again() -> None:
    device = torch.device("cuda:0")
    state = random_state(device)
    drawn = torch.rand(7, device=device)
    set_random_state(state, device)
    assert torch.equal(torch.rand(7, device=device), drawn)
    set_random_state(state, CPU)
