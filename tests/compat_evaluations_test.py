import json
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

import pytest
import torch
from allennlp.evaluation import SimpleEvaluator


class Counted(torch.nn.Module):
    """Has one number as its metrics: how many batches it got."""

    num_batches = 0

    def forward(self, **batch: Any) -> Dict[str, Any]:
        self.num_batches += 1
        return {}

    def get_metrics(self, reset: bool = False) -> Dict[str, int]:
        return {"batches": self.num_batches}


class Batches:
    """Two batches, and an error after them if they are `bad`."""

    def __init__(self, bad: bool) -> None:
        self._is_bad = bad

    def set_target_device(self, device: torch.device) -> None:
        pass

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        yield {}
        yield {}
        if self._is_bad:
            raise ValueError("a bad text")


@pytest.fixture
def evaluate() -> Callable[..., Any]:
    serializer: Any = lambda *args, **kwargs: "an answer"  # noqa: E731
    return SimpleEvaluator(batch_serializer=serializer)


def test_an_evaluation_that_fails_leaves_the_files_of_an_earlier_one(
    evaluate: Callable[..., Any], tmp_path: Path
) -> None:
    files = [tmp_path / "metrics.json", tmp_path / "answers.jsonl"]
    for file in files:
        file.write_text("older")
    with pytest.raises(ValueError, match="a bad text"):
        evaluate(Counted(), Batches(bad=True), None, *files)
    assert {file: file.read_text() for file in tmp_path.iterdir()} == dict.fromkeys(files, "older")


def test_what_an_evaluation_finds_is_in_its_files(
    evaluate: Callable[..., Any], tmp_path: Path
) -> None:
    metrics, answers = tmp_path / "metrics.json", tmp_path / "answers.jsonl"
    found = evaluate(Counted(), Batches(bad=False), None, str(metrics), str(answers))
    assert json.loads(metrics.read_text()) == found == {"batches": 2}
    assert answers.read_text() == "an answer\n" * 2
    assert evaluate(Counted(), Batches(bad=False)) == found
