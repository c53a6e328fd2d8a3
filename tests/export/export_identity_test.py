from typing import Any, Callable, Dict

import pytest

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export import ExportSettings, InputText
from elmo_scratch.export.plan import facts_of
from elmo_scratch.kernels.precision import BFLOAT16
from tests.export.conftest import LINES

NewLayers = Callable[..., SentenceLayers]


def test_the_facts_are_those_of_the_model_and_the_settings(
    new_layers: NewLayers, text: InputText
) -> None:
    layers = new_layers("reset")
    facts = facts_of(text, layers, ExportSettings("top", pool="max", dtype="float16"))
    assert facts.model == layers.identity
    assert (facts.layers, facts.width, facts.state) == (3, layers.width, "reset")
    assert (facts.kept, facts.pool, facts.dtype) == ("top", "max", "float16")
    assert facts.keys is None
    assert facts_of(text, layers, ExportSettings(use_sentence_keys=True)).keys == "sentences"


@pytest.mark.parametrize(
    "change",
    [
        {"kept": "average"},
        {"pool": "mean"},
        {"dtype": "float16"},
        {"forget_sentences": True},
        {"use_sentence_keys": True},
    ],
)
def test_what_changes_the_output_changes_the_identity(
    change: Dict[str, Any], new_layers: NewLayers, text: InputText
) -> None:
    layers = new_layers()
    one = facts_of(text, layers, ExportSettings())
    assert one.export != facts_of(text, layers, ExportSettings(**change)).export


def test_so_do_the_text_the_state_and_the_precision(new_layers: NewLayers, text: InputText) -> None:
    settings = ExportSettings()
    found = {
        facts_of(text, new_layers(), settings).export,
        facts_of(InputText("text", LINES[:1]), new_layers(), settings).export,
        facts_of(text, new_layers("carry"), settings).export,
        facts_of(text, new_layers(matmul_dtype="bfloat16"), settings).export,
    }
    assert len(found) == 4


def test_the_precision_is_the_one_that_products_run_in(
    new_layers: NewLayers, text: InputText, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BFLOAT16, "known", True)
    asked = [new_layers(matmul_dtype=name) for name in ("float32", "bfloat16")]
    one, other = (facts_of(text, layers, ExportSettings()) for layers in asked)
    assert one == other


def test_so_does_the_text_that_warms_up(new_layers: NewLayers, text: InputText) -> None:
    found = set()
    for line in LINES[:2]:
        layers = new_layers("warm")
        layers.warm_up([line.split()])
        found.add(facts_of(text, layers, ExportSettings()).export)
    assert len(found) == 2


@pytest.mark.parametrize("state, is_same", [("reset", True), ("carry", False)])
def test_batches_count_only_where_states_are_carried(
    state: str, is_same: bool, new_layers: NewLayers, text: InputText
) -> None:
    layers = new_layers(state)
    one = facts_of(text, layers, ExportSettings(batch_size=2))
    assert (one == facts_of(text, layers, ExportSettings(batch_size=3))) is is_same


def test_compression_changes_no_vector(new_layers: NewLayers, text: InputText) -> None:
    layers = new_layers()
    one = facts_of(text, layers, ExportSettings())
    assert one == facts_of(text, layers, ExportSettings(compression="lzf"))
