import io
import random
from pathlib import Path
from typing import Tuple

import numpy
import pytest
import torch

from elmo_scratch.training.exact_resume import (
    random_state,
    separate_workers,
    set_random_state,
)
from tests.metrics.workers import run_in_two_workers

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


def check_worker(rank: int) -> None:
    torch.manual_seed(13)
    separate_workers()
    drawn = torch.rand(1)
    first = torch.rand(1, generator=torch.Generator().manual_seed(13))
    assert torch.equal(drawn, first) == (rank == 0)


def test_each_worker_has_random_numbers_of_its_own(tmp_path: Path) -> None:
    run_in_two_workers(check_worker, tmp_path)


def test_a_single_process_has_those_of_its_seed() -> None:
    torch.manual_seed(13)
    expected = torch.rand(1)
    torch.manual_seed(13)
    separate_workers()
    assert torch.equal(torch.rand(1), expected)
