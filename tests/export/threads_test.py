import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any, Callable, Generator, Iterator, List
from weakref import ReferenceType, ref

import pytest

from elmo_scratch.export import pipeline
from elmo_scratch.export.pipeline import DEPTH, Abandoned, consume_behind, run_ahead


def test_items_come_in_their_order() -> None:
    assert list(run_ahead(number for number in range(100))) == list(range(100))


def test_work_is_done_in_another_thread() -> None:
    names = list(run_ahead(threading.current_thread().name for _ in range(3)))
    assert threading.current_thread().name not in names


def test_it_runs_ahead_no_further_than_it_may() -> None:
    made: List[int] = []

    def numbers() -> Generator[int, None, None]:
        for number in range(100):
            made.append(number)
            yield number

    with closing(run_ahead(numbers())) as ahead:
        assert next(ahead) == 0
        deadline = time.monotonic() + 60
        while len(made) < DEPTH and time.monotonic() < deadline:
            time.sleep(0.001)
        assert DEPTH <= len(made) <= DEPTH + 1


def test_an_error_comes_in_its_turn() -> None:
    def numbers() -> Generator[int, None, None]:
        yield 1
        yield 2
        raise ValueError("broken")

    ahead = run_ahead(numbers())
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(ValueError, match="broken"):
        next(ahead)


def test_what_runs_ahead_is_closed_with_it() -> None:
    closed = threading.Event()

    def numbers() -> Generator[int, None, None]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    with closing(run_ahead(run_ahead(numbers()))) as ahead:
        next(ahead)
    assert closed.is_set()
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


def numbers(count: int, error: bool = False) -> Generator[int, None, None]:
    """So many numbers, and then perhaps an error."""
    yield from range(count)
    if error:
        raise ValueError("broken")


def as_it_is(number: int) -> int:
    return number


def taking_all(errors: List[type]) -> Callable[[Iterator[int]], None]:
    """A consumer that writes down which kind of error it got in place of an item."""

    def consume(items: Iterator[int]) -> None:
        try:
            list(items)
        except BaseException as error:
            errors.append(type(error))
            raise

    return consume


def test_all_is_consumed_in_its_order_in_another_thread() -> None:
    taken: List[int] = []
    names: List[str] = []

    def consume(items: Iterator[int]) -> None:
        names.append(threading.current_thread().name)
        taken.extend(items)

    consume_behind(numbers(100), as_it_is, consume)
    assert taken == list(range(100))
    assert names != [threading.current_thread().name]


def test_the_tensor_work_stays_in_the_thread_that_calls() -> None:
    names: List[str] = []
    steps = (threading.current_thread().name for _ in range(3))
    consume_behind(steps, lambda name: name + threading.current_thread().name, names.extend)
    assert set(names) == {2 * threading.current_thread().name}


def test_no_more_is_made_than_may_wait() -> None:
    made: List[int] = []
    behind: List[int] = []

    def make(number: int) -> int:
        made.append(number)
        return number

    def consume(items: Iterator[int]) -> None:
        for taken, _ in enumerate(items, start=1):
            time.sleep(0.002)
            behind.append(len(made) - taken)

    consume_behind(numbers(50), make, consume)
    assert max(behind) <= DEPTH + 1


def test_items_are_made_while_another_is_consumed() -> None:
    third_is_made = threading.Event()

    def make(number: int) -> int:
        if number == 2:
            third_is_made.set()
        return number

    def consume(items: Iterator[int]) -> None:
        assert next(items) == 0
        assert third_is_made.wait(60)
        assert list(items) == [1, 2]

    consume_behind(numbers(3), make, consume)


def test_both_sides_can_take_turns() -> None:
    seen: List[str] = []

    def make(number: int) -> int:
        seen.append(f"made {number}")
        return number

    def consume(items: Iterator[int]) -> None:
        for number in items:
            time.sleep(0.01)
            seen.append(f"consumed {number}")

    consume_behind(numbers(3), make, consume, depth=0)
    assert seen == [f"{did} {number}" for number in range(3) for did in ("made", "consumed")]


class _Memory:
    """What takes memory while somebody holds it."""


def test_what_was_consumed_is_let_go_of_before_the_next_is_made() -> None:
    made: List["ReferenceType[_Memory]"] = []
    held: List[int] = []

    def make(_: int) -> _Memory:
        held.append(sum(reference() is not None for reference in made))
        memory = _Memory()
        made.append(ref(memory))
        return memory

    def consume(items: Iterator[_Memory]) -> None:
        assert list(map(id, items))

    consume_behind(numbers(4), make, consume, depth=0)
    assert held == [0, 0, 0, 0]


def test_the_next_step_is_taken_while_an_item_is_consumed() -> None:
    second_is_taken = threading.Event()

    def steps() -> Generator[int, None, None]:
        yield 0
        second_is_taken.set()
        yield 1

    def consume(items: Iterator[int]) -> None:
        assert next(items) == 0
        assert second_is_taken.wait(60)
        assert list(items) == [1]

    consume_behind(steps(), as_it_is, consume, depth=0)


@pytest.mark.parametrize("depth", [0, DEPTH])
def test_who_takes_no_more_is_not_waited_for(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever waits is woken; nobody has to look again.
    monkeypatch.setattr(pipeline, "SECONDS_TO_LOOK_AGAIN", 3600)
    made: List[int] = []

    def make(number: int) -> int:
        made.append(number)
        return number

    def take_one(items: Iterator[int]) -> None:
        next(items)

    consume_behind(numbers(100), make, take_one, depth)
    assert len(made) <= depth + 1


def test_nothing_is_consumed_as_well() -> None:
    for _ in range(200):
        taken: List[int] = []
        consume_behind(numbers(0), as_it_is, taken.extend)
        assert taken == []


def test_an_error_of_the_maker_ends_the_consumer() -> None:
    seen: List[type] = []
    with pytest.raises(ValueError, match="broken"):
        consume_behind(numbers(5, error=True), as_it_is, taking_all(seen))
    with pytest.raises(ZeroDivisionError):
        consume_behind(numbers(5), lambda number: 1 // (3 - number), taking_all(seen))
    assert seen == [Abandoned, Abandoned]


def test_an_error_of_the_consumer_ends_the_maker() -> None:
    closed = threading.Event()

    def steps() -> Generator[int, None, None]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    def consume(items: Iterator[int]) -> None:
        next(items)
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        consume_behind(steps(), as_it_is, consume)
    assert closed.is_set()


@pytest.fixture(params=["start of the thread", *range(1, 4)])
def interrupted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes while the thread starts, or while so many pieces of work were handed to it."""
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit
    handed = 0

    def start_and_interrupt(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    def submit_and_interrupt(
        thread: ThreadPoolExecutor, work: Callable[..., Any], /, *args: Any
    ) -> "Future[Any]":
        nonlocal handed
        handed += 1
        future = submit(thread, work, *args)
        if handed == request.param:
            raise KeyboardInterrupt
        return future

    if request.param == "start of the thread":
        monkeypatch.setattr(threading.Thread, "start", start_and_interrupt)
    else:
        monkeypatch.setattr(ThreadPoolExecutor, "submit", submit_and_interrupt)


def slow_numbers() -> Generator[int, None, None]:
    """Numbers that take a while, so that others find the generator at work."""
    for number in range(3):
        time.sleep(0.05)
        yield number


def no_thread_is_left() -> bool:
    """Whether all threads of executors end, which they may do a moment later."""
    deadline = time.monotonic() + 60
    while left := [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]:
        if time.monotonic() > deadline:
            return False
        left[0].join(1)
    return True


@pytest.mark.usefixtures("interrupted")
def test_an_interruption_ends_what_runs_ahead() -> None:
    with pytest.raises(KeyboardInterrupt):
        list(run_ahead(slow_numbers()))
    assert no_thread_is_left()


@pytest.mark.usefixtures("interrupted")
def test_an_interruption_ends_what_runs_behind() -> None:
    seen: List[type] = []

    def steps() -> Generator[int, None, None]:
        yield from slow_numbers()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        consume_behind(steps(), as_it_is, taking_all(seen))
    assert seen in ([], [Abandoned])
    assert no_thread_is_left()


def test_another_interruption_waits_for_what_runs_behind() -> None:
    """Ctrl-C, twice: while an item waits for its place, and while the thread ends."""
    begun = threading.Event()
    seen: List[type] = []

    def consume(items: Iterator[int]) -> None:
        next(items)
        begun.set()
        interrupting.join()
        taking_all(seen)(items)

    def interrupt() -> None:
        begun.wait()
        for _ in range(3):
            time.sleep(0.1)
            signal.raise_signal(signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            consume_behind(numbers(100), as_it_is, consume)
        assert seen == [Abandoned]
    finally:
        signal.signal(signal.SIGINT, before)
        interrupting.join()
