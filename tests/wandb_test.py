"""AllenNLP's callback for Weights & Biases, with the version that requirements.txt pins."""

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import pytest

from tests.tiny_training import CONFIGS, params_on_fixtures, train

MIX = "text_field_embedder.token_embedder_elmo.mix"


class OfflineRun(NamedTuple):
    """What a run would send: its project and config, and by name steps and values."""

    project: str
    config: Dict[str, Any]
    history: Dict[str, List[Tuple[int, Any]]]


def records(file: Path) -> Iterator[Any]:
    """What stands in the file that `wandb sync` sends."""
    store = import_module("wandb.sdk.internal.datastore").DataStore()
    store.open_for_scan(str(file))
    record_type = import_module("wandb.proto.wandb_internal_pb2").Record
    data = store.scan_data()
    while data is not None:
        yield record_type.FromString(bytes(data))
        data = store.scan_data()


def read_run(file: Path) -> OfflineRun:
    run = OfflineRun("", {}, {})
    for record in records(file):
        if record.HasField("run"):
            run = run._replace(project=record.run.project)
            for update in record.run.config.update:
                run.config[update.key] = json.loads(update.value_json)
        if record.HasField("history"):
            values = {
                item.key or ".".join(item.nested_key): json.loads(item.value_json)
                for item in record.history.item
            }
            for name, value in values.items():
                run.history.setdefault(name, []).append((values["_step"], value))
    return run


@pytest.fixture(scope="module")
def folder(
    wandb: ModuleType, bilm_archive: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Of a training of two epochs that nobody is asked about, and that sends nothing."""
    temporary = tmp_path_factory.mktemp("wandb")
    params = params_on_fixtures(CONFIGS / "ag_news" / "elmo_wandb.jsonnet", bilm_archive)
    params["trainer"]["num_epochs"] = 2
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("WANDB_API_KEY", raising=False)
        environment.setenv("WANDB_MODE", "offline")
        environment.setenv("WANDB_SILENT", "true")
        for name in ("DIR", "CACHE_DIR", "CONFIG_DIR", "DATA_DIR"):
            environment.setenv(f"WANDB_{name}", str(temporary))
        train(params, temporary / "run")
        wandb.teardown()
    yield temporary / "run"


@pytest.fixture(scope="module")
def run(folder: Path) -> OfflineRun:
    (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    return read_run(file)


def test_the_metrics_of_each_epoch_arrive(run: OfflineRun, folder: Path) -> None:
    for epoch in range(2):
        file = folder / f"metrics_epoch_{epoch}.json"
        metrics = json.loads(file.read_text(encoding="utf-8"))
        for part, name in (("train", "training"), ("validation", "validation")):
            for metric in ("loss", "accuracy", "macro_f1"):
                _, value = run.history[f"{part}/{metric}"][epoch]
                assert value == pytest.approx(metrics[f"{name}_{metric}"])


def test_the_path_of_the_mix_arrives(run: OfflineRun) -> None:
    assert [step for step, _ in run.history[f"mix/gamma_{MIX}"]] == [1, 11]
    paths = [run.history[f"mix/layer_share_{MIX}.{layer}"] for layer in range(3)]
    for points in zip(*paths):
        assert sum(value for _, value in points) == pytest.approx(1)
    assert paths[0][0] != paths[0][1]


def test_the_config_arrives(run: OfflineRun) -> None:
    assert run.project == "elmo_scratch"
    assert run.config["model"]["type"] == "elmo_scratch_classifier"
