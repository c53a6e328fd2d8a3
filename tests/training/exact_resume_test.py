import json
import os
import shutil
import signal
from copy import deepcopy
from pathlib import Path
from typing import Any, Dict, List, Tuple, Union

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data.data_loaders import MultiProcessDataLoader

from elmo_scratch.kernels.precision import BFLOAT16
from tests.forked import run_forked
from tests.tiny_training import CONFIGS, params_on_fixtures
from tests.training.tiny_runs import (
    BATCHES,
    EPOCHS,
    Interrupt,
    Place,
    differences,
    outcome,
    run,
    run_until,
    tiny_config,
)

LOADERS: Dict[str, Dict[str, Any]] = {
    "shuffled": {"data_loader": {"batch_size": 8, "shuffle": True}},
    "lazily": {"data_loader": {"batch_size": 8, "shuffle": True, "max_instances_in_memory": 16}},
    "in_place": {"data_loader": {"type": "simple", "batch_size": 8, "shuffle": True}},
    "in_buckets": {
        "data_loader": {
            "batch_sampler": {"type": "bucket", "batch_size": 8, "sorting_keys": ["sentence"]}
        }
    },
}


def config_with(loader: str, **trainer: Any) -> Dict[str, Any]:
    return {**tiny_config(**trainer), **deepcopy(LOADERS[loader])}


def exhaustive(*places: Place) -> List[Any]:
    """Places that are no other class than those beside them."""
    return [pytest.param(place, marks=pytest.mark.exhaustive) for place in places]


@pytest.fixture(scope="module")
def through(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a training that nothing interrupted wrote to."""
    folder = tmp_path_factory.mktemp("through") / "run"
    run(tiny_config(), folder)
    return folder


@pytest.mark.parametrize(
    "at",
    [
        # Right behind a checkpoint, and in the middle.
        (1, 3, True),
        *exhaustive(*((1, batch, True) for batch in (1, 2, 4, BATCHES)), (0, 5, True)),
        # The last checkpoint is of the middle of the epoch; validation drew from the state.
        (1, 2, False),
        (2, BATCHES, True),
    ],
    ids=str,
)
def test_an_interrupted_run_ends_in_the_same_bits(through: Path, at: Place, tmp_path: Path) -> None:
    run_until(at, tiny_config(), tmp_path / "run")
    run(tiny_config(), tmp_path / "run", recover=True)
    assert not differences(outcome(tmp_path / "run"), outcome(through))


@pytest.mark.parametrize("at", [(1, 3, True), *exhaustive((0, 3, True), (2, 1, True))], ids=str)
def test_layers_that_are_thawed_one_after_the_other_come_back_as_they_were(
    at: Place, tmp_path: Path
) -> None:
    config = tiny_config(
        optimizer={
            "type": "adam",
            "lr": 0.03,
            "parameter_groups": [
                [["token_encoder"], {}],
                [["left_to_right", "right_to_left"], {}],
                [["softmax"], {}],
            ],
        },
        learning_rate_scheduler={"type": "slanted_triangular", "gradual_unfreezing": True},
    )
    run(config, tmp_path / "through")
    run_until(at, config, tmp_path / "run")
    run(config, tmp_path / "run", recover=True)
    assert not differences(outcome(tmp_path / "run"), outcome(tmp_path / "through"))


def test_products_are_rounded_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_config()
    config["model"]["matmul_dtype"] = "bfloat16"
    monkeypatch.setattr(BFLOAT16, "known", True)
    run_until((0, 5, True), config, tmp_path / "run")
    monkeypatch.setattr(BFLOAT16, "known", False)
    run(config, tmp_path / "run", recover=True)
    assert BFLOAT16.known


def test_the_comparison_sees_a_difference(through: Path, tmp_path: Path) -> None:
    without = tiny_config(callbacks=["tests_interrupt"])
    run_until((1, 3, True), without, tmp_path / "run")
    run(without, tmp_path / "run", recover=True)
    found = differences(outcome(tmp_path / "run"), outcome(through))
    assert any(place.startswith("/best/bilm") for place in found)


@pytest.mark.parametrize("loader", [name for name in LOADERS if name != "shuffled"])
def test_every_loader_comes_back_to_its_place(loader: str, tmp_path: Path) -> None:
    # A scheduler that needs no length of an epoch, which a lazy loader doesn't know.
    noam = {"type": "noam", "model_size": 5, "warmup_steps": 4, "factor": 0.1}
    config = config_with(loader, learning_rate_scheduler=noam)
    run(config, tmp_path / "through")
    run_until((1, 3, True), config, tmp_path / "run")
    run_until((2, 1, True), config, tmp_path / "run", recover=True)
    run(config, tmp_path / "run", recover=True)
    assert not differences(outcome(tmp_path / "run"), outcome(tmp_path / "through"))


def test_a_place_that_is_no_more_is_told_before_anything_is_kept(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    lines = [f"{word} the river bank\n" for word in ("a", "b", "c", "d", "e", "f")] * 6
    text.write_text("".join(lines))
    config = tiny_config()
    del config["dataset_reader"]["max_instances"]
    config.update(train_data_path=str(text), validation_data_path=str(text))
    run_until((1, 4, True), config, tmp_path / "run")
    text.write_text("".join(lines[:8]))
    before = sorted(path.name for path in (tmp_path / "run").glob("*.th"))
    with pytest.raises(
        ConfigurationError, match="2 batches of its epoch were read, which now has 1"
    ):
        run(config, tmp_path / "run", recover=True)
    assert sorted(path.name for path in (tmp_path / "run").glob("*.th")) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["elmo_word2vec", "elmo_pooled"])
def test_a_classifier_goes_on_to_the_bit(name: str, bilm_archive: Path, tmp_path: Path) -> None:
    """
    Of batches in buckets, with averaged weights and a learned mix: of layers that are kept, and of
    a biLM that is thawed layer by layer.
    """
    params = params_on_fixtures(CONFIGS / "ag_news" / f"{name}.jsonnet", bilm_archive)
    config = params.as_dict(quiet=True)
    config["trainer"]["num_epochs"] = EPOCHS
    config["trainer"]["checkpointer"]["save_every_num_batches"] = 3
    config["trainer"]["callbacks"].append({"type": "tests_interrupt"})
    run(config, tmp_path / "through")
    run_until((1, 5, True), config, tmp_path / "run")
    run(config, tmp_path / "run", recover=True)
    assert not differences(outcome(tmp_path / "run"), outcome(tmp_path / "through"))


def test_with_more_epochs_there_is_a_learning_rate_to_the_end(
    through: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(through, tmp_path / "run"))
    config = tiny_config(num_epochs=2 * EPOCHS)
    kept = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kept["trainer"]["num_epochs"] = 2 * EPOCHS
    (folder / "config.json").write_text(json.dumps(kept), encoding="utf-8")
    run(config, folder, recover=True)
    (file,) = folder.glob(f"training_state_e{2 * EPOCHS - 1}_b4.th")
    state = torch.load(file, weights_only=True)
    assert state["optimizer"]["param_groups"][0]["lr"] > 0


@pytest.mark.parametrize("at", [(1, 3, True), *exhaustive((1, 1, True), (1, 1, False))], ids=str)
def test_accumulated_gradients_come_back_to_their_place(at: Place, tmp_path: Path) -> None:
    # Three groups an epoch, of which the last has one batch.
    config = tiny_config(
        num_gradient_accumulation_steps=2,
        checkpointer={"type": "elmo_scratch_whole", "save_every_num_batches": 1},
    )
    run(config, tmp_path / "through")
    run_until(at, config, tmp_path / "run")
    run(config, tmp_path / "run", recover=True)
    assert not differences(outcome(tmp_path / "run"), outcome(tmp_path / "through"))


def test_groups_of_another_size_are_an_error_within_an_epoch(tmp_path: Path) -> None:
    checkpointer = {"type": "elmo_scratch_whole", "save_every_num_batches": 1}
    one, two = (
        tiny_config(num_gradient_accumulation_steps=number, checkpointer=checkpointer)
        for number in (1, 2)
    )
    run_until((1, 2, True), one, tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text(json.dumps(two), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="accumulation_steps` was 1 and is 2 now"):
        run(two, tmp_path / "run", recover=True)
    # Behind an epoch the next one may be trained otherwise.
    run_until((1, 1, True), one, tmp_path / "other")
    (tmp_path / "other" / "config.json").write_text(json.dumps(two), encoding="utf-8")
    run(two, tmp_path / "other", recover=True)
    assert (tmp_path / "other" / f"model_state_e{EPOCHS}_b0.th").exists()


@pytest.mark.parametrize("at", [(1, 3, True), *exhaustive((1, 1, True), (2, 3, True))], ids=str)
def test_only_the_epochs_that_are_meant_to_be_are_validated(at: Place, tmp_path: Path) -> None:
    config = tiny_config()
    config["trainer"]["callbacks"].append(
        {"type": "should_validate_callback", "validation_interval": 2}
    )
    run(config, tmp_path / "through")
    run_until(at, config, tmp_path / "run")
    run(config, tmp_path / "run", recover=True)
    assert not differences(outcome(tmp_path / "run"), outcome(tmp_path / "through"))


def test_what_is_recovered_behind_its_end_keeps_its_metrics(tmp_path: Path) -> None:
    run(tiny_config(), tmp_path / "run")
    file = tmp_path / "run" / "metrics.json"
    before = json.loads(file.read_text(encoding="utf-8"))
    run(tiny_config(), tmp_path / "run", recover=True)
    assert json.loads(file.read_text(encoding="utf-8")) == before
    assert "training_perplexity" in before


def test_best_weights_that_came_with_the_checkpoint_are_not_lost(tmp_path: Path) -> None:
    # No later epoch is better than the first.
    config = tiny_config(optimizer={"type": "sgd", "lr": 0.0}, moving_average=None)
    config["model"]["bilm"]["state"] = "reset"
    config["validation_data_loader"] = {"batch_size": 8}
    run_until((1, 1, True), config, tmp_path / "run")
    (tmp_path / "run" / "best.th").unlink()
    model = run(config, tmp_path / "run", recover=True)
    best = torch.load(tmp_path / "run" / "best.th", weights_only=True)
    assert not differences(dict(model.state_dict()), dict(best))
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["best_epoch"] == 0


def test_a_training_whose_patience_was_at_its_end_stays_there(tmp_path: Path) -> None:
    # No later epoch is better than the first.
    config = tiny_config(optimizer={"type": "sgd", "lr": 0.0}, moving_average=None, patience=1)
    config["model"]["bilm"]["state"] = "reset"
    config["validation_data_loader"] = {"batch_size": 8}
    run(config, tmp_path / "run")
    assert not (tmp_path / "run" / f"model_state_e{EPOCHS}_b0.th").exists()
    before = outcome(tmp_path / "run", EPOCHS - 1)
    run(config, tmp_path / "run", recover=True)
    assert not (tmp_path / "run" / f"model_state_e{EPOCHS}_b0.th").exists()
    assert not differences(outcome(tmp_path / "run", EPOCHS - 1), before)


def test_a_loader_that_can_skip_is_told_where_to_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    skipped: List[Tuple[int, int]] = []

    def skip(self: MultiProcessDataLoader, epochs: int, batches: int) -> None:
        skipped.append((epochs, batches))

    monkeypatch.setattr(MultiProcessDataLoader, "skip", skip, raising=False)
    config = tiny_config()
    run_until((1, 3, True), config, tmp_path / "run")
    assert not skipped
    run(config, tmp_path / "run", recover=True)
    assert skipped == [(1, 2)]


@pytest.mark.parametrize("other", [{}, {"of": "another callback"}], ids=["none", "another"])
def test_a_checkpoint_without_the_state_is_told(other: Dict[str, str], tmp_path: Path) -> None:
    config = tiny_config()
    run_until((1, 3, True), config, tmp_path / "run")
    for file in (tmp_path / "run").glob("training_state_*.th"):
        state = torch.load(file, weights_only=True)
        state["callbacks"][0] = other
        torch.save(state, file)
    model = run(config, tmp_path / "run", recover=True)
    log = (tmp_path / "run" / "out.log").read_text(encoding="utf-8")
    assert log.count("without `elmo_scratch_exact_resume`") == 1
    # AllenNLP's checks would note for ever what each module does.
    assert not any(module._forward_hooks for module in model.modules())


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def train_until_killed(at: Union[Place, str], folder: Path, recover: bool = True) -> None:
    """
    `allennlp train` in a process that is killed behind a batch, or when half of a file is written
    that has such a name.
    """

    save = torch.save

    def on_batch(*args: Any, is_training: bool, **_: Any) -> None:
        if (args[5], args[6], is_training) == at:
            kill()

    def save_half(state: Any, file: Any, *args: Any, **kwargs: Any) -> None:
        save(state, file, *args, **kwargs)
        if str(at) in str(getattr(file, "name", file)):
            file.truncate(file.tell() // 2)
            file.flush()
            kill()

    def train() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Interrupt, "on_batch", on_batch)
            patch.setattr(torch, "save", save_half)
            run(tiny_config(), folder, recover)

    ended = run_forked(train, folder.with_suffix(".errors"))
    assert ended.status == -signal.SIGKILL, ended.errors


def test_a_training_that_is_killed_again_and_again_ends_in_the_same_bits(
    through: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    train_until_killed((0, 3, True), folder, recover=False)
    # Between the epochs.
    train_until_killed(".model_state_e1_b0.th", folder)
    train_until_killed((2, 3, True), folder)
    run(tiny_config(), folder, recover=True)
    assert not differences(outcome(folder), outcome(through))
    assert not differences(validation_of(folder), validation_of(through))
    assert not list(folder.glob(".*"))


def validation_of(folder: Path) -> Dict[str, Any]:
    """The metrics of the last validation."""
    file = folder / f"metrics_epoch_{EPOCHS - 1}.json"
    metrics = json.loads(file.read_text(encoding="utf-8"))
    return {name: value for name, value in metrics.items() if "validation" in name}
