"""Weights that AllenNLP's own classes have saved."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest
import torch
from allennlp.modules.elmo import Elmo as AllenNlpElmo
from allennlp.modules.elmo import _ElmoBiLm
from allennlp.modules.token_embedders import ElmoTokenEmbedder

from elmo_scratch import Elmo, batch_to_ids
from elmo_scratch.embedders import OfficialEmbedder
from tests import FIXTURES_ROOT
from tests.tiny_elmo import OPTIONS, write_files

FOLDER = FIXTURES_ROOT / "elmo" / "residual"
FILES: Tuple[str, str] = (str(FOLDER / "options.json"), str(FOLDER / "weights.hdf5"))

BATCHES = [
    [["The", "bank", "of", "the", "river"], ["A", "bank"]],
    [["It", "rose"], ["A", "river", "fell", "."], ["No"]],
]

CLOSE: Any = {"atol": 2e-6, "rtol": 1e-5}


def trained(module: Any) -> Any:
    """Other weights than those of the files."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return module.eval()


def representations(elmo: Any) -> List[torch.Tensor]:
    return [one for batch in BATCHES for one in elmo(batch_to_ids(batch))["elmo_representations"]]


@pytest.mark.parametrize(
    "settings",
    [
        {"num_output_representations": 2},
        {"num_output_representations": 1, "vocab_to_cache": ["A", "bank"]},
        {"num_output_representations": 1, "scalar_mix_parameters": [0.1, 0.2, -0.3]},
        {"num_output_representations": 3, "requires_grad": True, "do_layer_norm": True},
    ],
)
def test_weights_of_allennlps_elmo_load(settings: Dict[str, Any]) -> None:
    theirs = trained(AllenNlpElmo(*FILES, dropout=0.0, **settings))
    ours = Elmo(*FILES, dropout=0.0, **settings).eval()
    ours(batch_to_ids(BATCHES[0]))
    ours.reset_states()
    ours.load_state_dict(theirs.state_dict())
    for vectors, expected in zip(representations(ours), representations(theirs)):
        torch.testing.assert_close(vectors, expected, **CLOSE)


@pytest.mark.parametrize("requires_grad", [True, False], ids=["trained", "frozen"])
def test_words_that_were_trained_by_themselves_are_told(
    requires_grad: bool, caplog: pytest.LogCaptureFixture
) -> None:
    settings: Any = {"vocab_to_cache": ["A", "bank"], "requires_grad": requires_grad}
    theirs = AllenNlpElmo(*FILES, 1, **settings)
    Elmo(*FILES, 1, **settings).load_state_dict(theirs.state_dict())
    assert ("learned about the words" in caplog.text) == requires_grad


def test_weights_of_a_model_that_holds_one_load_by_their_prefix() -> None:
    theirs: Any = torch.nn.ModuleDict(
        {"elmo": trained(AllenNlpElmo(*FILES, 1)), "other": torch.nn.Linear(2, 3)}
    ).eval()
    ours: Any = torch.nn.ModuleDict(
        {"elmo": Elmo(*FILES, 1), "other": torch.nn.Linear(2, 3)}
    ).eval()
    ours.load_state_dict(theirs.state_dict())
    assert torch.equal(ours["other"].weight, theirs["other"].weight)
    for vectors, expected in zip(*(representations(model["elmo"]) for model in (ours, theirs))):
        torch.testing.assert_close(vectors, expected, **CLOSE)


def test_own_weights_load_as_ever() -> None:
    theirs = trained(Elmo(*FILES, 2))
    ours = Elmo(*FILES, 2).eval()
    ours.load_state_dict(theirs.state_dict())
    for vectors, expected in zip(representations(ours), representations(theirs)):
        assert torch.equal(vectors, expected)


@pytest.mark.parametrize("projection_dim", [None, 5])
def test_weights_of_elmo_token_embedder_load(projection_dim: Optional[int]) -> None:
    settings: Dict[str, Any] = {"dropout": 0.0, "projection_dim": projection_dim}
    theirs = trained(ElmoTokenEmbedder(*FILES, **settings))
    ours = OfficialEmbedder(*FILES, **settings).eval()
    ours.load_state_dict(theirs.state_dict())
    for batch in BATCHES:
        ids = batch_to_ids(batch)
        torch.testing.assert_close(ours(ids), theirs(ids), **CLOSE)


def test_another_module_keeps_the_names_of_its_weights() -> None:
    nothing: Any = None
    theirs, ours = (
        kind(nothing, nothing, 1, dropout=0.0, module=_ElmoBiLm(*FILES))
        for kind in (AllenNlpElmo, Elmo)
    )
    trained(theirs)
    ours.eval()
    ours.load_state_dict(theirs.state_dict())
    expected = representations(theirs)
    for vectors, wanted in zip(representations(ours), expected):
        torch.testing.assert_close(vectors, wanted, **CLOSE)


def test_weights_of_a_bilm_without_projections_load(tmp_path: Path) -> None:
    assert OPTIONS.char_cnn is not None
    lstm, num_filters = OPTIONS.lstm, sum(number for _, number in OPTIONS.char_cnn.filters)
    files = write_files(
        tmp_path, replace(OPTIONS, lstm=replace(lstm, dim=num_filters, projection_dim=num_filters))
    )
    theirs = AllenNlpElmo(*files, 1, dropout=0.0)
    for name, module in theirs.named_modules():
        if not name.endswith("projection"):
            for parameter in module.parameters(recurse=False):
                parameter.data.mul_(1.1)
    ours = Elmo(*files, 1, dropout=0.0).eval()
    ours.load_state_dict(theirs.state_dict())
    for vectors, expected in zip(representations(ours), representations(theirs)):
        torch.testing.assert_close(vectors, expected, **CLOSE)


def test_what_has_no_place_is_told() -> None:
    weights = AllenNlpElmo(*FILES, 2).state_dict()
    with pytest.raises(RuntimeError, match="Unexpected.*scalar_mix_1.gamma"):
        Elmo(*FILES, 1).load_state_dict(weights)
    del weights["_elmo_lstm._elmo_lstm.forward_layer_1.state_linearity.bias"]
    with pytest.raises(RuntimeError, match="Missing.*left_to_right.layers.1.bias"):
        Elmo(*FILES, 2).load_state_dict(weights)


def test_the_weights_given_stay_as_they_were() -> None:
    weights = AllenNlpElmo(*FILES, 1).state_dict()
    names, shapes = list(weights), [tensor.shape for tensor in weights.values()]
    Elmo(*FILES, 1).load_state_dict(weights)
    assert (list(weights), [tensor.shape for tensor in weights.values()]) == (names, shapes)
