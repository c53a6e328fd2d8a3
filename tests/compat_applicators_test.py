"""
Initializers and regularizers of configs that were written for AllenNLP's ELMo, or for models that
know nothing of it. `__wrapped__` is what stock AllenNLP does.
"""

import logging
from typing import Any, Dict, List

import pytest
import torch
from allennlp.common import Params
from allennlp.modules.elmo import Elmo as AllenNlpElmo
from allennlp.modules.token_embedders import ElmoTokenEmbedder
from allennlp.nn import InitializerApplicator, RegularizerApplicator

from elmo_scratch import Elmo
from elmo_scratch.embedders import OfficialEmbedder
from tests.tiny_elmo import OfficialFiles

KINDS = ("weight", "bias")

PARSER = [[".*projection.*weight", "xavier_uniform"], [".*projection.*bias", "zero"]]
"""What AllenNLP's dependency parser begins with."""


class Task(torch.nn.Module):
    """An ELMo and a layer of the task, which both have a `projection`."""

    def __init__(self, elmo: torch.nn.Module) -> None:
        super().__init__()
        self.elmo = elmo
        self.tag_projection_layer = torch.nn.Linear(3, 3)


def changed(task: Task, initializer: Dict[str, Any], stock: bool = False) -> List[str]:
    """The names of the parameters that an initializer changes."""
    before = {name: parameter.detach().clone() for name, parameter in task.named_parameters()}
    applicator = InitializerApplicator.from_params(Params(initializer))
    call: Any = InitializerApplicator.__call__
    (call.__wrapped__ if stock else call)(applicator, task)
    return [
        name
        for name, parameter in task.named_parameters()
        if not torch.equal(parameter, before[name])
    ]


def own(files: OfficialFiles) -> torch.nn.Module:
    return OfficialEmbedder(files.options, files.weights, projection_dim=3)


def allennlps(files: OfficialFiles) -> torch.nn.Module:
    return ElmoTokenEmbedder(files.options, files.weights, projection_dim=3)


@pytest.mark.parametrize("make", [own, allennlps])
def test_an_initializer_of_a_parser_leaves_pretrained_weights_alone(
    make: Any, files: OfficialFiles, caplog: pytest.LogCaptureFixture
) -> None:
    stock = changed(Task(make(files)), {"regexes": PARSER}, stock=True)
    assert any(".lstms." in name or "_elmo_lstm" in name or ".bilm." in name for name in stock)
    caplog.set_level(logging.WARNING)
    now = changed(Task(make(files)), {"regexes": PARSER})
    projection = "elmo.projection" if make is own else "elmo._projection"
    expected = {f"{name}.{part}" for name in (projection, "tag_projection_layer") for part in KINDS}
    assert set(now) == expected
    assert "The initializer of '.*projection.*weight' would have changed pre-trained" in caplog.text


def test_the_initializer_pretrained_copies_into_a_bilm(files: OfficialFiles, tmp_path: Any) -> None:
    (name, weight), *_ = own(files).named_parameters(prefix="elmo")
    assert ".bilm." in name
    torch.save({name: weight + 1}, tmp_path / "weights.th")
    copying = {"type": "pretrained", "weights_file_path": str(tmp_path / "weights.th")}
    assert changed(Task(own(files)), {"regexes": [[name, copying]]}) == [name]


def test_what_is_prevented_is_not_reported(
    files: OfficialFiles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    rules = {"regexes": PARSER, "prevent_regexes": [".*bilm.*"]}
    assert "elmo.projection.weight" in changed(Task(own(files)), rules)
    assert "pre-trained" not in caplog.text


def test_a_regex_of_weights_does_not_mean_those_of_a_mix(files: OfficialFiles) -> None:
    task = Task(own(files))
    # A mix has one number a layer, for which there is no such initializer.
    rules: Dict[str, Any] = {"regexes": [[".*weight", "xavier_uniform"]]}
    assert changed(task, rules) == ["elmo.projection.weight", "tag_projection_layer.weight"]
    rules = {"regexes": [[r"mixes\.0\.weights", {"type": "constant", "val": 2.0}]]}
    assert changed(task, rules) == ["elmo.elmo.mixes.0.weights"]


def penalty(module: torch.nn.Module, regex: str) -> float:
    params = Params({"regexes": [[regex, {"type": "l2", "alpha": 0.1}]]})
    return RegularizerApplicator.from_params(params)(module).item()


@pytest.mark.parametrize(
    "regex", ["scalar_parameters", r"scalar_mix_0\.scalar_parameters\.\d", r"scalar_mix_\d.*"]
)
def test_an_old_regularizer_acts_as_it_did(regex: str, files: OfficialFiles) -> None:
    paths = (files.options, files.weights)
    ours, theirs = Elmo(*paths, 1), AllenNlpElmo(*paths, 1)
    scalars: Any = theirs.scalar_mix_0.scalar_parameters
    with torch.no_grad():
        ours.mixes[0].weights.copy_(torch.tensor([1.0, 2.0, 4.0]))
        for number, parameter in zip((1.0, 2.0, 4.0), scalars):
            parameter.fill_(number)
    assert penalty(ours, regex) == pytest.approx(penalty(theirs, regex))
    assert penalty(ours, regex) > 2


def test_a_regularizer_finds_our_own_names(files: OfficialFiles) -> None:
    task = Task(OfficialEmbedder(files.options, files.weights))
    with torch.no_grad():
        task.elmo.elmo.mixes[0].weights.fill_(1.0)
    for regex in (r"mixes\.0\.weights", r"^elmo\._elmo\.scalar_mix_0\.scalar_parameters"):
        assert penalty(task, regex) == pytest.approx(0.1 * 3)
    # With γ, which is 1.
    assert penalty(task, r"_elmo\.scalar_mix") == pytest.approx(0.1 * 4)


def test_a_regularizer_that_matches_nothing_is_reported_once(
    files: OfficialFiles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    rules = {"regexes": [["scalar_weights", "l2"], ["tag_projection", "l2"]]}
    applicator = RegularizerApplicator.from_params(Params(rules))
    task = Task(own(files))
    applicator(task)
    applicator(task)
    assert caplog.messages == ["The regularizer of 'scalar_weights' matches no trained parameter"]
