"""The regularizer of docs/using/allennlp.md reaches the weights of all mixes, and no other ones."""

import json
import re
from pathlib import Path
from typing import Callable

import pytest
import torch
from allennlp.common import Lazy, Params
from allennlp.data import Vocabulary
from allennlp.nn.regularizers import RegularizerApplicator
from allennlp.nn.regularizers.regularizers import L2Regularizer

from elmo_scratch.embedders import BiLmEmbedder, OfficialEmbedder
from elmo_scratch.modules.mixes import TrainableMix
from tests import PROJECT_ROOT
from tests.tiny_elmo import OfficialFiles
from tests.tiny_training import CONFIGS, params_on_fixtures, train

ALPHA = 0.001


@pytest.fixture(scope="module")
def regex() -> str:
    """As it stands on that page."""
    text = (PROJECT_ROOT / "docs" / "using" / "allennlp.md").read_text(encoding="utf-8")
    found = re.search(r"regexes: \[\[(\".*?\"), {", text)
    assert found is not None
    return json.loads(found[1])


def of_archive(archive: Path, files: OfficialFiles) -> torch.nn.Module:
    vocab = Vocabulary(tokens_to_add={"tokens": ["the"]})
    return BiLmEmbedder(vocab, pretrained_file=str(archive), output_mix=Lazy(TrainableMix))


def of_official_files(archive: Path, files: OfficialFiles) -> torch.nn.Module:
    return OfficialEmbedder(files.options, files.weights, output_mix=Lazy(TrainableMix))


@pytest.mark.parametrize("make", [of_archive, of_official_files])
def test_it_reaches_the_weights_of_all_mixes(
    make: Callable[..., torch.nn.Module], regex: str, bilm_archive: Path, files: OfficialFiles
) -> None:
    model = torch.nn.ModuleDict({"token_embedder_elmo": make(bilm_archive, files)})
    mixes = [part for part in model.modules() if isinstance(part, TrainableMix)]
    assert len(mixes) == 2
    for mix in mixes:
        torch.nn.init.normal_(mix.weights)
    # Weights that are not trained have no penalty anyway.
    model.requires_grad_(True)
    penalty = RegularizerApplicator([(regex, L2Regularizer(ALPHA))])(model)
    expected = ALPHA * torch.cat([mix.weights for mix in mixes]).square().sum()
    assert torch.allclose(penalty, expected)


def test_a_training_pays_for_the_weights(regex: str, bilm_archive: Path, tmp_path: Path) -> None:
    params = params_on_fixtures(CONFIGS / "ag_news" / "elmo_trainable.jsonnet", bilm_archive)
    config = params.as_dict(quiet=True)
    embedder = config["model"]["text_field_embedder"]["token_embedders"]["elmo"]
    embedder["mix"]["initial_weights"] = [1.0, -2.0, 0.5]
    config["model"]["regularizer"] = {"regexes": [[regex, {"type": "l2", "alpha": ALPHA}]]}
    config["trainer"]["optimizer"]["lr"] = 0.0
    train(Params(config), tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["training_reg_loss"] == pytest.approx(ALPHA * (1 + 4 + 0.25), rel=1e-4)
