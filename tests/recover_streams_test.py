"""A pre-training on streams that was stopped goes on to the bit."""

from pathlib import Path
from typing import Any, Dict

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.streams import stream
from tests.tiny_training import CONFIGS, config_on_fixtures
from tests.training.tiny_runs import EPOCHS, Place, differences, outcome, run, run_until

OPTIMIZERS: Dict[str, Dict[str, Any]] = {
    "full": {"type": "adam", "lr": 0.01},
    "sampled": {"type": "adagrad", "lr": 0.2},
    "adaptive": {"type": "adam", "lr": 0.01},
}
SOFTMAXES: Dict[str, Dict[str, Any]] = {
    "full": {"type": "full"},
    "sampled": {"type": "sampled", "num_samples": 50},
    "adaptive": {"type": "adaptive", "cutoffs": [50, 100]},
}


def config_with(softmax: str) -> Dict[str, Any]:
    config = config_on_fixtures(CONFIGS / "bilm" / "fixture_characters.jsonnet")
    config["model"]["softmax"] = SOFTMAXES[softmax]
    config["data_loader"]["shuffle_sentences"] = True
    config["validation_data_loader"]["shuffle_sentences"] = True
    config["trainer"].update(
        num_epochs=EPOCHS,
        optimizer=OPTIMIZERS[softmax],
        cuda_device=-1,
        checkpointer={"type": "elmo_scratch_whole", "save_every_num_batches": 5},
        callbacks=["elmo_scratch_exact_resume", "tests_interrupt"],
    )
    return config


@pytest.mark.parametrize(
    "softmax, at",
    [("full", (1, 12, True)), ("sampled", (1, 12, True)), ("adaptive", (2, 3, False))],
)
def test_a_training_on_streams_goes_on_to_the_bit(
    softmax: str, at: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    # As in a text that is longer than what is read at once.
    monkeypatch.setattr(stream, "POSITIONS_AT_ONCE", 20)
    config = config_with(softmax)
    run(config, tmp_path / "through")
    run_until(at, config, tmp_path / "stopped")
    run(config, tmp_path / "stopped", recover=True)
    assert not differences(outcome(tmp_path / "through"), outcome(tmp_path / "stopped"))


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
