from pathlib import Path

from elmo_scratch.training.environment import gathered, own_rank
from tests.metrics.workers import run_in_two_workers


def check_worker(rank: int) -> None:
    assert own_rank() == rank
    assert gathered({"rank": rank}) == [{"rank": 0}, {"rank": 1}]


def test_each_knows_what_all_tell(tmp_path: Path) -> None:
    run_in_two_workers(check_worker, tmp_path)


def test_a_single_process_tells_itself() -> None:
    assert own_rank() == 0
    assert gathered("a") == ["a"]
