import json
import struct
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from tensorboardX.proto.event_pb2 import Event

from elmo_scratch.modules.mixes import FunctionMix, TopMix, TrainableMix
from elmo_scratch.training import MixShares
from elmo_scratch.training.callbacks import mix_numbers
from tests.tiny_training import CONFIGS, params_on_fixtures, train
from tests.training.tiny_runs import run, tiny_config

PLACE = "text_field_embedder.token_embedder_elmo.mix"


def test_every_mix_of_a_model_has_its_shares() -> None:
    model = torch.nn.ModuleDict({"one": TrainableMix(2, gamma=3.0), "other": TopMix(3)})
    assert mix_numbers(model) == {
        "layer_share_one.0": 0.5,
        "layer_share_one.1": 0.5,
        "gamma_one": 3.0,
        "layer_share_other.0": 0.0,
        "layer_share_other.1": 0.0,
        "layer_share_other.2": 1.0,
    }
    assert len(mix_numbers(FunctionMix(3, 4))) == 3


@pytest.fixture(scope="module")
def folder(bilm_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a training of two epochs with TensorBoard."""
    folder = tmp_path_factory.mktemp("shares") / "run"
    params = params_on_fixtures(CONFIGS / "ag_news" / "elmo_trainable.jsonnet", bilm_archive)
    params["trainer"]["num_epochs"] = 2
    params["trainer"]["callbacks"] = [
        {"type": "elmo_scratch_mix_shares", "every_num_batches": 2},
        {"type": "tensorboard"},
    ]
    train(params, folder)
    return folder


def test_shares_and_scale_stand_in_the_metrics_of_each_epoch(folder: Path) -> None:
    numbers = []
    for epoch in range(2):
        file = folder / f"metrics_epoch_{epoch}.json"
        metrics = json.loads(file.read_text(encoding="utf-8"))
        shares = [metrics[f"layer_share_{PLACE}.{layer}"] for layer in range(3)]
        assert sum(shares) == pytest.approx(1.0)
        numbers.append([*shares, metrics[f"gamma_{PLACE}"]])
    assert numbers[0] != numbers[1]


def scalars(folder: Path) -> Dict[str, List[Tuple[int, float]]]:
    """What TensorBoard shows of a training: for each name steps and numbers."""
    found: Dict[str, List[Tuple[int, float]]] = {}
    for file in folder.rglob("events.out.tfevents.*"):
        data = file.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            event = Event.FromString(data[12 : 12 + length])
            data = data[16 + length :]
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_their_path_can_be_drawn_in_tensorboard(folder: Path) -> None:
    drawn = scalars(folder / "log" / "train")
    for name in (f"mix/layer_share_{PLACE}.2", f"mix/gamma_{PLACE}"):
        steps = [step for step, _ in drawn[name]]
        assert steps == list(range(steps[0], steps[-1] + 1, 2))
        assert len(steps) > 2
        assert len({number for _, number in drawn[name]}) > 1


def test_a_model_without_a_mix_is_an_error(tmp_path: Path) -> None:
    config: Dict[str, Any] = tiny_config(callbacks=["elmo_scratch_mix_shares"])
    with pytest.raises(ConfigurationError, match="LanguageModel has none"):
        run(config, tmp_path / "run")


def test_an_interval_of_no_batches_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="`every_num_batches` of 1 or more, but got 0"):
        MixShares("", every_num_batches=0)


def test_they_are_those_of_the_model_that_is_kept(bilm_archive: Path, tmp_path: Path) -> None:
    params = params_on_fixtures(CONFIGS / "ag_news" / "elmo_trainable.jsonnet", bilm_archive)
    params["trainer"]["num_epochs"] = 1
    params["trainer"]["moving_average"] = {"type": "exponential", "decay": 0.9}
    params["trainer"]["callbacks"] = [{"type": "elmo_scratch_mix_shares"}]
    kept = train(params, tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics_epoch_0.json").read_text(encoding="utf-8"))
    for name, number in mix_numbers(kept).items():
        assert metrics[name] == pytest.approx(number, abs=1e-7)
