import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Optional

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.training import GradientDescentTrainer

from elmo_scratch.modules.mixes import TopMix
from elmo_scratch.training import Speed
from elmo_scratch.training.callbacks import num_text_tokens
from tests.metrics.workers import run_in_two_workers
from tests.tiny_training import BILM_WIDTH, CONFIGS, config_on_fixtures, train
from tests.training.tiny_runs import EPOCHS, run, tiny_config


def train_batches(speed: Speed, num_tokens: List[int], clock: List[float]) -> None:
    for number in num_tokens:
        clock[0] += 2.0
        outputs = [{"num_tokens": number}, {"num_tokens": 1}]
        speed.on_batch(None, [], outputs, {}, 0, 1, is_training=True)  # type: ignore[arg-type]


def test_tokens_count_from_the_end_of_the_first_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    speed = Speed("")
    trainer: Any = None
    for _ in range(2):
        metrics = {"training_tokens_per_second": 3.0}
        train_batches(speed, [1000, 29, 49], clock)
        clock[0] += 50
        speed.on_batch(trainer, [], [{"num_tokens": 1000}], {}, 0, 1, is_training=False)
        clock[0] += 50
        speed.on_epoch(trainer, metrics, 0)
        assert metrics == {"training_tokens_per_second": (30 + 50) / 4}
        clock[0] += 50


def test_an_epoch_of_one_batch_has_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = {"training_tokens_per_second": 3.0}
    speed = Speed("")
    train_batches(speed, [29], [100.0])
    speed.on_epoch(None, metrics, 0)  # type: ignore[arg-type]
    assert not metrics


def test_it_stands_in_the_metrics_of_each_epoch(tmp_path: Path) -> None:
    run(tiny_config(callbacks=["elmo_scratch_speed"]), tmp_path / "run")
    for name in [*(f"metrics_epoch_{epoch}" for epoch in range(EPOCHS)), "metrics"]:
        metrics = json.loads((tmp_path / "run" / f"{name}.json").read_text(encoding="utf-8"))
        assert metrics["training_tokens_per_second"] > 0


def test_a_model_that_does_not_count_its_tokens_is_an_error() -> None:
    speed, model = Speed(""), type("Silent", (), {})()
    trainer: Any = type("Trainer", (), {"model": model})()
    told = "returns `num_tokens`, but Silent reads ids and returns loss"
    inputs: Any = {"ids": torch.ones(2, 3)}
    with pytest.raises(ConfigurationError, match=told):
        for _ in range(2):
            speed.on_batch(trainer, [inputs], [{"loss": 0.0}], {}, 0, 1, is_training=True)
    metrics: Dict[str, Any] = {}
    speed = Speed("", may_be_unknown=True)
    for _ in range(2):
        speed.on_batch(trainer, [inputs], [{"loss": 0.0}], {}, 0, 1, is_training=True)
    speed.on_epoch(trainer, metrics, 0)
    assert metrics == {}


WORDS = torch.tensor([[4, 5, 6], [7, 0, 0]])
CHARACTERS = torch.tensor([[[2, 3], [4, 0], [5, 0]], [[6, 7], [0, 0], [0, 0]]])


@pytest.mark.parametrize(
    "texts, num_tokens",
    [
        ({"text": {"tokens": {"tokens": WORDS}}}, 4),
        ({"text": {"elmo": {"elmo_tokens": CHARACTERS}}}, 4),
        ({"text": {"elmo": {"elmo_tokens": CHARACTERS}, "tokens": {"tokens": WORDS}}}, 4),
        ({"one": {"tokens": {"tokens": WORDS}}, "two": {"tokens": {"tokens": WORDS[:1]}}}, 7),
        ({"text": {"bert": {"token_ids": WORDS + 1, "type_ids": WORDS * 0, "mask": WORDS > 0}}}, 4),
        ({"texts": {"tokens": {"tokens": WORDS[None]}}}, None),
        ({"texts": {"elmo": {"elmo_tokens": CHARACTERS[None]}}}, None),
        ({"label": WORDS[0]}, None),
    ],
)
def test_tokens_of_texts_count(texts: Dict[str, Any], num_tokens: Optional[int]) -> None:
    inputs: Any = {"metadata": [{}], "label": WORDS[0], **texts}
    found = num_text_tokens(inputs)
    assert (None if found is None else found.item()) == num_tokens


def test_a_tagger_is_measured_without_a_line_in_its_config(tmp_path: Path) -> None:
    config = config_on_fixtures(CONFIGS / "pos" / "official.jsonnet")
    config["model"]["encoder"]["input_size"] += 12 - BILM_WIDTH  # of the official files
    config["trainer"]["num_epochs"] = 1
    config["data_loader"]["batch_sampler"]["batch_size"] = 4
    assert "elmo_scratch_speed" not in str(config)
    train(Params(config), tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics_epoch_0.json").read_text(encoding="utf-8"))
    assert metrics["training_tokens_per_second"] > 0


def test_other_trainings_measure_what_they_did() -> None:
    class Model(torch.nn.Linear):
        pass

    data: Any = SimpleNamespace(set_target_device=lambda device: None)
    ours = torch.nn.ModuleList([TopMix(3)])
    for model, number in ((Model(2, 3), 0), (ours, 1)):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        trainer = GradientDescentTrainer(model, optimizer, data, cuda_device=-1)  # type: ignore
        assert sum(isinstance(one, Speed) for one in trainer._callbacks) == number


def check_speed_of_two(rank: int) -> None:
    clock, metrics = [100.0], {"epoch": 0}
    speed = Speed("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: clock[0])
        train_batches(speed, [1000, 29 + 100 * rank], clock)
    speed.on_epoch(None, metrics, 0, is_primary=rank == 0)  # type: ignore[arg-type]
    expected = {"training_tokens_per_second": (30 + 130) / 2} if rank == 0 else {}
    assert metrics == {"epoch": 0, **expected}


def test_tokens_of_all_workers_count(tmp_path: Path) -> None:
    run_in_two_workers(check_speed_of_two, tmp_path)
