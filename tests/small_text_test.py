"""A text of 134 tokens is learned by heart, as in the tests of the original."""

from pathlib import Path
from typing import Any, Dict

import pytest
from allennlp.common import Params

from elmo_scratch.models import LanguageModel
from tests import FIXTURES_ROOT
from tests.tiny_training import train

NUM_TOKENS = 134

ENCODERS: Dict[str, Dict[str, Any]] = {
    "word": {"type": "word", "dim": 32},
    "char_cnn": {"type": "char_cnn", "dim": 32, "filters": [[1, 16], [2, 16], [3, 32]]},
}
SOFTMAXES: Dict[str, Dict[str, Any]] = {
    "full": {"type": "full"},
    "sampled": {"type": "sampled", "num_samples": 30},
    "adaptive": {"type": "adaptive", "cutoffs": [20, 50]},
}


def small_text(folder: Path) -> Path:
    """The first tokens of the fixtures' text."""
    lines, num_tokens = [], 0
    for line in (FIXTURES_ROOT / "text" / "sentences.txt").read_text().splitlines():
        words = line.split()[: NUM_TOKENS - num_tokens]
        lines.append(" ".join(words))
        num_tokens += len(words)
        if num_tokens == NUM_TOKENS:
            break
    path = folder / "text.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "encoder, softmax, optimizer, epochs",
    [
        ("char_cnn", "sampled", "elmo_scratch_adagrad", 25),
        ("word", "full", "adagrad", 50),
        ("char_cnn", "full", "adagrad", 50),
        ("char_cnn", "sampled", "adagrad", 50),
        ("char_cnn", "adaptive", "adagrad", 50),
    ],
)
def test_a_small_text_is_learned_within_50_epochs(
    encoder: str,
    softmax: str,
    optimizer: str,
    epochs: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    text = str(small_text(tmp_path))
    loader = {"type": "elmo_scratch_stream", "batch_size": 2, "unroll_steps": 10}
    indexers = {
        "tokens": {"type": "single_id"},
        "characters": {"type": "elmo_scratch_characters"},
    }
    config = {
        "dataset_reader": {"type": "elmo_scratch_sentences", "token_indexers": indexers},
        "train_data_path": text,
        "validation_data_path": text,
        "vocabulary": {"type": "elmo_scratch_corpus", "data_path": text},
        "model": {
            "type": "elmo_scratch_bilm",
            "bilm": {"token_encoder": ENCODERS[encoder], "cell_size": 64, "dropout": 0.1},
            "softmax": SOFTMAXES[softmax],
            "dropout": 0.1,
            "loss_weight": 10,
        },
        "data_loader": loader,
        "validation_data_loader": loader,
        "trainer": {
            "num_epochs": epochs,
            "optimizer": {"type": optimizer, "lr": 0.2, "initial_accumulator_value": 1.0},
            "grad_norm": 10.0,
            "validation_metric": "-perplexity",
            "checkpointer": {"save_completed_epochs": False},
        },
    }
    model = train(Params(config), tmp_path / "run")
    assert isinstance(model, LanguageModel)
    metrics = Params.from_file(str(tmp_path / "run" / "metrics.json")).as_dict()
    # Of the last epoch, not of the best.
    assert metrics["validation_perplexity_left_to_right"] < 20
    assert metrics["validation_perplexity_right_to_left"] < 20
