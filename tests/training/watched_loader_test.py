from typing import Iterator, List

import pytest
import torch
from allennlp.data import DataLoader, TensorDict, Vocabulary

from elmo_scratch.training.exact_resume import WatchedLoader


class TwoBatches(DataLoader):
    def __init__(self, told: List[str]) -> None:
        self._told = told

    def __iter__(self) -> Iterator[TensorDict]:
        for name in "ab":
            self._told.append(f"draws {name}")
            yield {name: torch.zeros(())}

    def __len__(self) -> int:
        return 2

    def index_with(self, vocab: Vocabulary) -> None:
        self._told.append("index_with")

    def set_target_device(self, device: torch.device) -> None:
        self._told.append(f"set_target_device {device}")


class Endless(TwoBatches):
    def __len__(self) -> int:
        raise TypeError


def test_it_tells_right_before_it_draws() -> None:
    told: List[str] = []
    loader = WatchedLoader(
        TwoBatches(told),
        lambda *place: told.append(f"before {place}"),
        lambda *place: told.append(f"at the end {place}"),
    )
    for _ in range(2):
        for number, batch in enumerate(loader, start=1):
            told.append(f"{loader.num_drawn} drawn: {', '.join(batch)}")
            assert loader.num_drawn == number
    one, other = told[: len(told) // 2], told[len(told) // 2 :]
    assert one == [
        "before (0, 0)",
        "draws a",
        "1 drawn: a",
        "before (0, 1)",
        "draws b",
        "2 drawn: b",
        "before (0, 2)",
        "at the end (0, 2)",
    ]
    assert other == [line.replace("(0,", "(1,") for line in one]


def test_for_all_else_it_is_the_other_loader() -> None:
    told: List[str] = []
    loader = WatchedLoader(TwoBatches(told), lambda *place: None, lambda *place: None)
    assert len(loader) == 2
    loader.index_with(Vocabulary())
    loader.set_target_device(torch.device("cpu"))
    assert told == ["index_with", "set_target_device cpu"]
    with pytest.raises(NotImplementedError):
        loader.iter_instances()
    with pytest.raises(TypeError):
        len(WatchedLoader(Endless(told), lambda *place: None, lambda *place: None))
