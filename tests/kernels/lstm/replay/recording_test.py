import threading
import time
from typing import List, Sequence

import pytest
import torch

from elmo_scratch.kernels.lstm.cuda_graphs import Recording
from tests.gpu import each_device


def replayed(recording: Recording, given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    made = [part[0] for part in recording.room(1)]
    recording(given, made)
    return made


def some(device: str) -> List[torch.Tensor]:
    return [torch.randn(5, 3, device=device), torch.randn(3, device=device)]


@each_device
def test_it_makes_what_the_work_makes(device: str) -> None:
    weight = torch.randn(4, 3, device=device)
    recording = Recording(lambda given: [given[0] @ weight.t(), given[0] + given[1]], some(device))
    for _ in range(3):
        given = some(device)
        for made, expected in zip(
            replayed(recording, given), [given[0] @ weight.t(), given[0] + given[1]], strict=True
        ):
            assert torch.allclose(made, expected, atol=1e-6)


@each_device
def test_what_it_made_stays(device: str) -> None:
    recording = Recording(lambda given: [given[0], 2 * given[0]], some(device)[:1])
    given = some(device)[:1]
    first = replayed(recording, given)
    before = [part.clone() for part in (*given, *first)]
    replayed(recording, some(device)[:1])
    assert all(torch.equal(*pair) for pair in zip((*given, *first), before, strict=True))


@each_device
def test_there_is_room_for_many_replays(device: str) -> None:
    recording = Recording(lambda given: [given[0] + 1, given[1].double()], some(device))
    one, other = recording.room(3)
    assert (one.shape, one.dtype) == ((3, 5, 3), torch.float32)
    assert (other.shape, other.dtype) == ((3, 3), torch.float64)
    assert one.device.type == other.device.type == device
    all_given = [some(device) for _ in range(3)]
    for given, *own in zip(all_given, one, other, strict=True):
        recording(given, own)
    for given, *made in zip(all_given, one, other, strict=True):
        assert torch.equal(made[0], given[0] + 1) and torch.equal(made[1], given[1].double())


@each_device
def test_it_reads_weights_anew(device: str) -> None:
    weight = torch.ones(3, device=device)
    recording = Recording(lambda given: [given[0] * weight], some(device)[:1])
    given = some(device)[:1]
    weight.fill_(3.0)
    assert torch.equal(replayed(recording, given)[0], 3.0 * given[0])


@each_device
def test_it_serves_in_every_mode(device: str) -> None:
    with torch.inference_mode():
        recording = Recording(lambda given: [given[0] + 1], some(device)[:1])
        given = some(device)[:1]
        assert torch.equal(replayed(recording, given)[0], given[0] + 1)
    given = some(device)[:1]
    given[0].requires_grad_()
    (made,) = replayed(recording, given)
    assert torch.equal(made, given[0] + 1) and not made.requires_grad and not made.is_inference()


@each_device
def test_work_that_fails_is_an_error(device: str) -> None:
    def fail(given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        raise RuntimeError("not to be recorded")

    with pytest.raises(RuntimeError, match="not to be recorded"):
        Recording(fail, some(device))


@each_device
def test_threads_take_turns(device: str) -> None:
    def slowly(given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        time.sleep(0.01)
        return [given[0] + 0]

    recording = Recording(slowly, [torch.zeros(3, device=device)])
    found: List[torch.Tensor] = []

    def replay(number: int) -> None:
        for _ in range(5):
            given = [torch.full((3,), number, device=device).float()]
            found.append(replayed(recording, given)[0] - number)

    threads = [threading.Thread(target=replay, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20 and not any(part.any() for part in found)
