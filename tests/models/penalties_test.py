"""Regularization of a language model's last outputs: locked dropout and the penalties."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_scratch.models import LanguageModel
from tests.models.language_model_test import batch_of, instances_of, model_for
from tests.running_text_test import given

SEED = 5


class Taught(NamedTuple):
    """A language model in training, and its batches, of sentences or of windows."""

    model: LanguageModel
    batches: List[Dict[str, Any]]


def taught(folder: Path, kind: str) -> Taught:
    """Nothing is dropped, and weights are large enough for penalties to matter."""
    if kind == "windows":
        what = given(folder, "word", batch_size=2, unroll_steps=4)
        return Taught(what.model, list(what.loader))
    instances = instances_of("a b a c b", "c a", "b")
    vocab = Vocabulary.from_instances(instances)
    torch.manual_seed(13)
    model = model_for(vocab, dropout=0.0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    for stack in (model.bilm.left_to_right, model.bilm.right_to_left):
        stack.dropout.p = 0.0
    return Taught(model, [batch_of(instances, vocab)])


each_kind = pytest.mark.parametrize("kind", ["sentences", "windows"])


def read_by_softmax(model: LanguageModel, batch: Dict[str, Any]) -> torch.Tensor:
    """The states as the softmax reads them, shape `(predicted, dim)`."""
    found: List[torch.Tensor] = []
    handle = model.softmax.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0]))
    model(**batch)
    handle.remove()
    return found[0].detach()


def last_outputs(model: LanguageModel, batch: Dict[str, Any]) -> List[torch.Tensor]:
    """The last outputs of each direction of each row that holds text, one after the other."""
    if "windows" in batch:
        windows = batch["windows"]
        if windows["is_first"]:
            model._running_text.forget()
        vectors = model.bilm.token_encoder.encode_words(windows["words"])
        read = [vectors[windows[name]] for name in ("left_to_right", "right_to_left")]
        mask = windows["mask"]
        start = model._running_text.start(vectors, len(mask))
        done = model.bilm.read_windows(read[0], read[1], mask, start)
        tops = [done.left_to_right, done.right_to_left]
    else:
        ids = batch["sentence"]["tokens"]["tokens"]
        layers, mask = model.bilm(ids, ids > 0)
        tops = list(layers[-1].chunk(2, dim=-1))
    return [row[own] for top in tops for row, own in zip(top, mask) if own.any()]


@each_kind
@torch.no_grad()
def test_penalties_are_part_of_the_training_loss_alone(kind: str, tmp_path: Path) -> None:
    model, batches = taught(tmp_path, kind)
    model._loss_weight = 3.0
    for batch in batches:
        mask = batch["windows"]["mask"] if kind == "windows" else torch.ones(1)
        share = 3.0 * mask.double().mean().item()
        rows = last_outputs(model, batch)
        before = model._running_text.carried()
        plain = model(**batch)["loss"].item()
        model._running_text.carry_on_from(before)
        model._activation_penalty, model._temporal_penalty = 2.0, 5.0
        states = read_by_softmax(model, batch)
        model._running_text.carry_on_from(before)
        penalized = model(**batch)["loss"].item()
        changes = [(row[1:] - row[:-1]).square() for row in rows]
        change = torch.cat([part.flatten() for part in changes]).mean().item()
        added = 2.0 * states.square().mean().item() + 5.0 * change
        assert penalized - plain == pytest.approx(share * added, rel=1e-4)
        assert added > 0.1
        model._running_text.carry_on_from(before)
        model.eval()
        evaluated = model(**batch)["loss"].item()
        model.train()
        assert evaluated * share == pytest.approx(plain, rel=1e-5)
        model._activation_penalty = model._temporal_penalty = 0.0


@each_kind
def test_perplexities_count_no_penalty(kind: str, tmp_path: Path) -> None:
    found = []
    for penalty in (0.0, 7.0):
        model, batches = taught(tmp_path, kind)
        model._activation_penalty = model._temporal_penalty = penalty
        for batch in batches:
            model(**batch)["loss"].backward()
        gradient = model.bilm.left_to_right.get_parameter("layers.1.projection_weight").grad
        assert gradient is not None
        found.append((model.get_metrics(reset=True), gradient))
    assert found[0][0] == found[1][0]
    assert not torch.allclose(found[0][1], found[1][1])


@each_kind
@torch.no_grad()
def test_the_activation_penalty_is_of_dropped_outputs(kind: str, tmp_path: Path) -> None:
    model, batches = taught(tmp_path, kind)
    model.dropout.p = 0.5

    def loss(penalty: float) -> float:
        model._activation_penalty = penalty
        torch.manual_seed(SEED)
        return model(**batches[0])["loss"].item()

    plain, penalized = loss(0.0), loss(2.0)
    torch.manual_seed(SEED)
    states = read_by_softmax(model, batches[0])
    assert (states == 0).any()
    assert penalized - plain == pytest.approx(2.0 * states.square().mean().item(), rel=1e-4)


@each_kind
def test_locked_dropout_drops_the_same_numbers_of_all_outputs_of_a_row(
    kind: str, tmp_path: Path
) -> None:
    model, batches = taught(tmp_path, kind)
    model.dropout.p, model._locked_dropout = 0.5, True
    batch = batches[0]
    torch.manual_seed(SEED)
    dropped = read_by_softmax(model, batch)
    model._running_text.forget()
    whole = read_by_softmax(model.eval(), batch)
    scales = (dropped / whole).round(decimals=3)
    assert sorted(set(scales.flatten().tolist())) == [0.0, 2.0]
    if kind == "windows":
        targets = [
            batch["windows"][f"{name}_targets"] for name in ("left_to_right", "right_to_left")
        ]
        counts = [int(count) for part in targets for count in (part > 0).sum(dim=1)]
    else:
        counts = [6, 3, 2] * 2  # as many words as there are, and a mark
    masks = []
    for row in scales.split(counts):
        assert torch.equal(row, row[:1].expand_as(row))
        masks.append(row[0].tolist())
    assert len({tuple(mask) for mask in masks}) > 1


@pytest.mark.parametrize("share, is_trained", [(0.5, False), (0.0, True)])
def test_without_dropout_nothing_is_locked(share: float, is_trained: bool, tmp_path: Path) -> None:
    model, batches = taught(tmp_path, "sentences")
    plain = read_by_softmax(model, batches[0])
    model.dropout.p, model._locked_dropout = share, True
    before = torch.get_rng_state()
    assert torch.equal(read_by_softmax(model.train(is_trained), batches[0]), plain)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("value", [-0.5, float("nan"), float("inf")])
@pytest.mark.parametrize("setting", ["activation_penalty", "temporal_penalty"])
def test_a_penalty_out_of_its_range_is_an_error(setting: str, value: float) -> None:
    vocab = Vocabulary.from_instances(instances_of("a b"))
    with pytest.raises(ConfigurationError, match=f"expected `{setting}` of 0 or more, but got"):
        model_for(vocab, **{setting: value})
