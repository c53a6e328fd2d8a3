import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import BiLmBlueprint, WordList
from elmo_scratch.modules.token_encoders import WordEncoder
from elmo_scratch.training import Norms
from elmo_scratch.training.callbacks import gradient_norms
from tests.tiny_archives import WORD_BILM
from tests.training.tiny_runs import BATCHES, EPOCHS, run, tiny_config


def test_each_part_has_a_norm_of_its_own() -> None:
    words = WordEncoder(dim=2, num_words=3, begin_id=1, end_id=2)
    model = torch.nn.ModuleDict({"words": words, "other": torch.nn.Linear(1, 2)})
    model["words"].embedding.weight.grad = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    model["other"].weight.grad = torch.tensor([[12.0], [0.0]])
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    norms = {"gradient_norm": 13.0, "gradient_norm_words": 5.0, "gradient_norm_rest": 12.0}
    assert gradient_norms(model) == pytest.approx(norms)
    # Clipped from three times as much.
    thrice = {name: 3 * norm for name, norm in norms.items()}
    assert gradient_norms(model, 39.0) == pytest.approx(thrice)


def test_equal_rows_of_a_sparse_gradient_are_one() -> None:
    table = torch.nn.Embedding(5, 1, sparse=True)
    table(torch.tensor([1, 1, 1, 3, 3, 3, 3])).sum().backward()
    assert gradient_norms(table)["gradient_norm"] == pytest.approx(5.0)


def test_no_gradient_has_no_norm() -> None:
    assert gradient_norms(torch.nn.Linear(1, 1), 0.0) == {"gradient_norm": 0.0}


def test_norms_stand_in_the_log_and_in_the_metrics(tmp_path: Path) -> None:
    callbacks = [{"type": "elmo_scratch_norms", "every_num_batches": 2}]
    run(tiny_config(callbacks=callbacks, grad_norm=0.01), tmp_path / "run")
    log = (tmp_path / "run" / "out.log").read_text(encoding="utf-8")
    assert log.count("Norms of epoch") == (EPOCHS * BATCHES + 1) // 2
    parts = [
        "bilm.token_encoder",
        *(f"bilm.{stack}.layers.{layer}" for stack in STACKS for layer in range(2)),
        "softmax",
    ]
    expected = {
        "training_gradient_norm",
        *(f"training_gradient_norm_{part}" for part in parts),
        *(f"training_activation_norm_bilm.{stack}.{n}" for stack in STACKS for n in range(3)),
    }
    for epoch in range(EPOCHS):
        file = tmp_path / "run" / f"metrics_epoch_{epoch}.json"
        metrics = json.loads(file.read_text(encoding="utf-8"))
        norms = {name: norm for name, norm in metrics.items() if "_norm" in name}
        assert set(norms) == expected
        assert all(norm > 0 for norm in norms.values())
        whole = norms["training_gradient_norm"]
        # Clipped to 0.01, measured before.
        assert whole > 0.1
        assert all(norms[f"training_gradient_norm_{part}"] <= whole for part in parts)


STACKS = ("left_to_right", "right_to_left")


def test_activation_norms_are_mean_lengths_of_the_layers_at_words_and_marks() -> None:
    torch.manual_seed(13)
    words = WordList(["", "<S>", "</S>", "<UNK>", "river", "bank"], "<UNK>")
    bilm = BiLmBlueprint(WORD_BILM, words).build()
    model = torch.nn.ModuleDict({"bilm": bilm})
    trainer: Any = SimpleNamespace(model=model, _scaler=None, _total_batches_completed=0)
    norms = Norms("", every_num_batches=2)
    norms.on_start(trainer)
    expected: Dict[str, List[float]] = {}
    for number in range(4):
        ids = torch.tensor([[3, 4, 5], [number + 1, 0, 0]])
        output = bilm(ids, ids > 0)  # sentences of five and of three positions
        for layer, vectors in enumerate(output.layers):
            for stack, halves in zip(STACKS, vectors.chunk(2, dim=-1), strict=True):
                lengths = [
                    math.hypot(*halves[row, place].tolist())
                    for row, end in enumerate((5, 3))
                    for place in range(end)
                ]
                if number % 2 == 0:
                    name = f"training_activation_norm_bilm.{stack}.{layer}"
                    expected.setdefault(name, []).append(sum(lengths) / 8)
        trainer._total_batches_completed += 1
        norms.on_batch(trainer, [], [], {}, 0, number + 1, is_training=True)
    metrics: Dict[str, Any] = {}
    norms.on_epoch(trainer, metrics, 0)
    assert len(expected) == 2 * 3 and metrics.pop("training_gradient_norm") == 0.0
    assert metrics == pytest.approx({name: sum(two) / 2 for name, two in expected.items()})


def test_an_epoch_without_a_measurement_shows_none_of_the_one_before() -> None:
    metrics = {"training_gradient_norm": 1.0, "training_activation_norm_x.0": 1.0, "epoch": 2}
    Norms("").on_epoch(None, metrics, 2)  # type: ignore[arg-type]
    assert metrics == {"epoch": 2}


def test_an_interval_of_no_batches_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="`every_num_batches` of 1 or more, but got 0"):
        Norms("", every_num_batches=0)


@pytest.mark.parametrize("has_scaler", [True, False])
def test_a_batch_that_mixed_precision_passes_over_is_not_measured(has_scaler: bool) -> None:
    norms = Norms("")
    model = torch.nn.Linear(1, 1)
    model.weight.grad = torch.tensor([[float("inf")]])
    scaler = object() if has_scaler else None
    trainer: Any = SimpleNamespace(
        model=model, _scaler=scaler, _grad_norm=None, _total_batches_completed=1
    )
    norms.on_batch(trainer, [], [], {}, 0, 1, is_training=True)
    metrics: Dict[str, Any] = {}
    norms.on_epoch(trainer, metrics, 0)
    assert bool(metrics) is not has_scaler


@pytest.mark.parametrize("grad_norm, expected", [(True, 3.0), (2.0, 5.0)], ids=["true", "clips"])
def test_the_scale_of_mixed_precision_is_not_in_the_norms(grad_norm: Any, expected: float) -> None:
    norms = Norms("")
    model = torch.nn.Linear(1, 1)
    model.weight.grad = torch.tensor([[3.0]])
    trainer: Any = SimpleNamespace(
        model=model, _scaler=object(), _grad_norm=grad_norm, _total_batches_completed=1
    )
    told = 3.0 * 65536 if grad_norm is True else 5.0
    norms.on_batch(trainer, [], [], {}, 0, 1, is_training=True, batch_grad_norm=told)
    metrics: Dict[str, Any] = {}
    norms.on_epoch(trainer, metrics, 0)
    assert metrics["training_gradient_norm"] == pytest.approx(expected)


def test_a_worker_whose_text_has_ended_measures_no_activations(tmp_path: Path) -> None:
    model = run(tiny_config(), tmp_path / "run")
    norms = Norms(str(tmp_path), every_num_batches=1)
    trainer: Any = SimpleNamespace(model=model, _total_batches_completed=0)
    norms.on_start(trainer)
    model.train()
    ids = torch.zeros(0, 3, dtype=torch.long)
    model.bilm(ids, ids > 0)
    assert norms._batch == {}
    model.bilm(torch.ones(1, 3, dtype=torch.long), torch.ones(1, 3, dtype=torch.bool))
    assert len(norms._batch) == 6
