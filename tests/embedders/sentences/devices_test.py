from typing import Any

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import SentenceLayers, sentence_layers
from elmo_scratch.kernels import device_of
from tests.tiny_elmo import OfficialFiles


def test_minus_one_is_the_processor() -> None:
    assert device_of(-1) == torch.device("cpu")


def test_a_gpu_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert device_of(1) == torch.device("cuda", 1)


@pytest.mark.parametrize("number", [97, -2])
@pytest.mark.parametrize("count, seen", [(0, "none"), (2, "those from 0 to 1")])
def test_a_gpu_that_is_not_there_is_an_error(
    number: int, count: int, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    message = f"a GPU with the number {number}, but PyTorch sees {seen};"
    with pytest.raises(ConfigurationError, match=message):
        device_of(number)


@pytest.mark.parametrize("wrong", ["gpu", "0", None, True, False, 1.0])
def test_what_is_no_number_is_an_error(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"a GPU, or -1 for .* but got {wrong!r}"):
        device_of(wrong)


def test_work_leaves_a_processor_where_there_are_more_than_threads(
    files: OfficialFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = SentenceLayers.from_official(*files)
    monkeypatch.setattr(sentence_layers, "num_processors", lambda: 3)
    for num_threads, is_left in ((1, True), (2, True), (3, False), (4, False)):
        monkeypatch.setattr(torch, "get_num_threads", lambda number=num_threads: number)
        for layers.is_alone in (True, False):
            assert layers.leaves_a_processor == (is_left and layers.is_alone)
    monkeypatch.setattr(layers, "_device", torch.device("cuda", 0))
    assert layers.leaves_a_processor
