"""The model that comes with the package."""

import re
import socket
from pathlib import Path
from typing import Any, List

import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.modules.token_embedders import TokenEmbedder

import elmo_scratch.registered  # noqa: F401  (the embedder's name)
from elmo_scratch import (
    Elmo,
    ElmoEmbedder,
    SentenceLayers,
    SentenceScorer,
    batch_to_ids,
    read_bilm,
)
from elmo_scratch.interop import export_model_folder
from elmo_scratch.interop.named_models import PACKAGED_MODELS, resolve_model
from elmo_scratch.scoring import TextScore
from tests import FIXTURES_ROOT, PROJECT_ROOT

FOLDER = PACKAGED_MODELS["tiny"]
CARD = (FOLDER / "README.md").read_text("utf-8")
SENTENCE = ["The", "river", "bank", "."]


@pytest.fixture(autouse=True)
def without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_every_door_opens_to_it() -> None:
    layers = SentenceLayers.from_pretrained("tiny")([SENTENCE])[0]
    assert layers.shape == (3, 4, 192) and layers.dtype == numpy.float32
    assert numpy.array_equal(ElmoEmbedder.from_pretrained("tiny").embed_sentence(SENTENCE), layers)
    elmo = Elmo.from_pretrained("tiny").eval()
    mixed = elmo(batch_to_ids([SENTENCE]))["elmo_representations"][0][0]
    assert torch.allclose(mixed, torch.from_numpy(layers).mean(0), atol=1e-6)
    embedder = TokenEmbedder.from_params(
        Params({"type": "elmo_scratch", "pretrained_file": "tiny"}), vocab=Vocabulary()
    )
    assert embedder.get_output_dim() == 192
    assert read_bilm("tiny", with_softmax=True).softmax.lowercase


def test_a_file_or_folder_of_its_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = PROJECT_ROOT / "tests" / "golden" / "words" / "model.tar.gz"
    export_model_folder(words, "tiny")
    assert resolve_model("tiny") == "tiny"
    assert read_bilm("tiny").bilm.width == read_bilm(words).bilm.width
    assert "./tiny" != resolve_model("./none/tiny") == "./none/tiny"
    monkeypatch.chdir("/")
    assert resolve_model("tiny") == str(FOLDER)
    with pytest.raises(ConfigurationError, match="no model of this name; did you mean tiny?"):
        resolve_model("tinny")


def test_it_is_small() -> None:
    files = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert set(files) == {"README.md", "config.json", "model.safetensors", "vocab.txt"}
    assert sum(files.values()) <= 3_000_000
    assert sum(weight.numel() for weight in read_bilm("tiny").bilm.parameters()) <= 1_400_000


def row_of(name: str) -> List[str]:
    """The cells of a row of the card."""
    found = re.search(rf"^\| {re.escape(name)} \| (.*) \|$", CARD, re.MULTILINE)
    assert found, f"the card has no row {name}"
    return found[1].split(" | ")


def test_the_card_has_the_perplexity_that_it_reaches() -> None:
    total = TextScore()
    for score in SentenceScorer.from_pretrained("tiny").score_text(
        FIXTURES_ROOT / "text" / "heldout.txt"
    ):
        total.add(score)
    words, unknown, *perplexities = row_of("`fixtures/text/heldout.txt`")
    assert (int(words), unknown) == (
        total.num_words,
        f"{total.num_unknown / total.num_words:.1%}",
    )
    both, *directions = total.perplexities().values()
    assert [float(cell) for cell in perplexities] == pytest.approx([*directions, both], rel=1e-4)


def test_the_card_says_what_one_must_know() -> None:
    for part in (
        *("license: cc-by-sa-4.0", "## Data", "## Perplexity", "## Senses", "## Training"),
        *("## Licence", "WikiText-103", "UD English EWT", "make_tiny.py", "tiny.jsonnet"),
        "It is no model for work",
    ):
        assert part in CARD, part
    for source in ("WikiText-103", "UD English EWT"):
        assert 50 < float(row_of(source)[-1]) < 200
    for file in re.findall(r"(?:examples|training_config|fixtures)/[\w./]+\w", CARD):
        assert (PROJECT_ROOT / file).exists(), file
