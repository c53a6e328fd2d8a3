"""A pre-training on streams that was stopped goes on to the bit."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data import streams
from tests.tiny_training import CONFIGS, config_on_fixtures
from tests.training.tiny_runs import EPOCHS, Place, differences, outcome, run, run_until

OPTIMIZERS: Dict[str, Dict[str, Any]] = {
    "full": {"type": "adam", "lr": 0.01},
    "sampled": {"type": "adagrad", "lr": 0.2},
    "sampled, fused": {"type": "elmo_scratch_adagrad", "lr": 0.2},
    "adaptive": {"type": "adam", "lr": 0.01},
}
SOFTMAXES: Dict[str, Dict[str, Any]] = {
    "full": {"type": "full"},
    "sampled": {"type": "sampled", "num_samples": 50},
    "adaptive": {"type": "adaptive", "cutoffs": [50, 100]},
}


def config_with(kind: str) -> Dict[str, Any]:
    config = config_on_fixtures(CONFIGS / "bilm" / "fixture_characters.jsonnet")
    config["model"]["softmax"] = SOFTMAXES[kind.split(",")[0]]
    config["data_loader"]["shuffle_sentences"] = True
    config["validation_data_loader"]["shuffle_sentences"] = True
    config["trainer"].update(
        num_epochs=EPOCHS,
        optimizer=OPTIMIZERS[kind],
        cuda_device=-1,
        checkpointer={"type": "elmo_scratch_whole", "save_every_num_batches": 5},
        callbacks=["elmo_scratch_exact_resume", "tests_interrupt"],
    )
    return config


@pytest.mark.parametrize(
    "kind, at",
    [
        ("sampled, fused", (1, 12, True)),
        pytest.param("adaptive", (2, 3, False), marks=pytest.mark.exhaustive),
        pytest.param("full", (1, 12, True), marks=pytest.mark.exhaustive),
        pytest.param("sampled", (1, 12, True), marks=pytest.mark.exhaustive),
    ],
)
def test_a_training_on_streams_goes_on_to_the_bit(
    kind: str, at: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    # As in a text that is longer than what is read at once.
    monkeypatch.setattr(streams, "POSITIONS_AT_ONCE", 20)
    config = config_with(kind)
    config["data_loader"]["unroll_steps"] = 40
    run(config, tmp_path / "through")
    run_until(at, config, tmp_path / "stopped")
    run(config, tmp_path / "stopped", recover=True)
    assert not differences(outcome(tmp_path / "through"), outcome(tmp_path / "stopped"))


def test_a_training_with_all_that_draws_goes_on_to_the_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    config = regularized(config_with("adaptive"))
    run(config, tmp_path / "through")
    run_until((1, 7, True), config, tmp_path / "stopped")
    run(config, tmp_path / "stopped", recover=True)
    assert not differences(outcome(tmp_path / "through"), outcome(tmp_path / "stopped"))


def regularized(config: Dict[str, Any]) -> Dict[str, Any]:
    """The config with all that may be done against overfitting."""
    config["model"]["bilm"].update(
        locked_dropout=True, recurrent_weight_dropout=0.3, word_dropout=0.1
    )
    config["model"].update(
        dropout=0.3, locked_dropout=True, activation_penalty=2.0, temporal_penalty=1.0
    )
    config["data_loader"].update(unroll_steps=40, random_windows=True)
    config["trainer"]["moving_average"] = {"type": "exponential", "decay": 0.9}
    return config


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("two_threads")
def test_the_recipe_for_a_million_words_goes_on_to_the_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    config = config_on_fixtures(CONFIGS / "bilm" / "ptb.jsonnet")
    bilm = config["model"]["bilm"]
    bilm["token_encoder"].update(dim=32, filters=[[1, 16], [3, 48]])
    bilm["cell_size"] = 64
    config["model"]["state_reset_probability"] = 0.25
    config["data_loader"].update(batch_size=16, unroll_steps=12)
    config["trainer"].update(num_epochs=EPOCHS, cuda_device=-1)
    config["trainer"]["learning_rate_scheduler"]["warmup_steps"] = 5
    config["trainer"]["checkpointer"]["save_every_num_batches"] = 2
    config["trainer"]["callbacks"].append("tests_interrupt")
    run(config, tmp_path / "through")
    run_until((1, 5, True), config, tmp_path / "stopped")
    run(config, tmp_path / "stopped", recover=True)
    assert not differences(outcome(tmp_path / "through"), outcome(tmp_path / "stopped"))


def with_windows_of(steps: int, config: Dict[str, Any], folder: Path) -> Dict[str, Any]:
    """The config with windows of another size, there and in the folder of its training."""
    made = deepcopy(config)
    made["data_loader"]["unroll_steps"] = steps
    (folder / "config.json").write_text(json.dumps(made), encoding="utf-8")
    return made


def test_windows_may_change_between_epochs_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    config, folder = config_with("full"), tmp_path / "run"
    run_until((0, 7, True), config, folder)
    before = contents(folder)
    larger = with_windows_of(21, config, folder)
    with pytest.raises(ConfigurationError, match="its way of reading the text is not the one"):
        run(larger, folder, recover=True)
    # AllenNLP writes the config again first.
    assert {**contents(folder), "config.json": before["config.json"]} == before
    # As far as the last checkpoint within an epoch is not reached.
    run_until((1, 2, True), with_windows_of(20, config, folder), folder, recover=True)
    run(with_windows_of(21, config, folder), folder, recover=True)


def test_a_schedule_of_learning_rates_ends_with_the_last_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    config, folder = config_with("full"), tmp_path / "run"
    config["trainer"]["learning_rate_scheduler"] = {"type": "linear_with_warmup", "warmup_steps": 2}
    run_until((1, 1, True), config, folder)
    # The last checkpoint is that of the first epoch's end.
    run(with_windows_of(13, config, folder), folder, recover=True)
    state = torch.load(folder / f"training_state_e{EPOCHS}_b0.th", weights_only=True)
    assert state["optimizer"]["param_groups"][0]["lr"] == 0.0
    schedule = state["learning_rate_scheduler"]
    (progress,) = [state["progress"] for state in state["callbacks"] if "progress" in state]
    # Epochs may differ by a window, by where the sentences of their order end.
    assert 0 <= progress[2] - schedule["total_steps"] <= EPOCHS


def contents(folder: Path) -> Dict[str, bytes]:
    """What a training keeps, but for its log."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".log"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "more, what", [("river " * 100 + "\n", "vocabulary"), ("zyzzyva\n", "training text")]
)
def test_on_another_text_a_training_does_not_go_on(
    more: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    config = config_with("full")
    text = tmp_path / "text.txt"
    text.write_text(Path(config["train_data_path"]).read_text(encoding="utf-8"), encoding="utf-8")
    config["train_data_path"] = config["vocabulary"]["data_path"] = str(text)
    config["vocabulary"]["max_size"] = 20
    run_until((1, 2, True), config, tmp_path / "run")
    before = contents(tmp_path / "run")
    with text.open("a", encoding="utf-8") as file:
        file.write(more)
    with pytest.raises(
        ConfigurationError, match=f"can't be recovered: its {what} is not the one that it began"
    ):
        run(config, tmp_path / "run", recover=True)
    assert contents(tmp_path / "run") == before
