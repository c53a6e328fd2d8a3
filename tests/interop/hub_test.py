"""Models of the Hugging Face Hub, by its library and its cache, against a stand-in of the hub."""

from pathlib import Path
from typing import Iterator

import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch import Elmo, ElmoEmbedder, SentenceLayers, batch_to_ids, read_bilm
from elmo_scratch.interop.named_models import push_folder
from tests import PROJECT_ROOT
from tests.local_hub import LocalHub, local_hub

CHARACTERS = PROJECT_ROOT / "tests" / "golden" / "characters" / "model.tar.gz"
SENTENCES = [["The", "river"], ["a"]]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with local_hub(tmp_path / "cache") as hub:
        yield hub


def same(one: SentenceLayers, other: SentenceLayers) -> bool:
    return all(map(numpy.array_equal, one(SENTENCES), other(SENTENCES)))


def test_a_model_goes_to_the_hub_and_is_read_from_there_and_from_the_cache(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = SentenceLayers(CHARACTERS)
    assert here.push_to_hub("me/river") == "hf://me/river"
    files = hub.repositories["me/river"]
    assert {*files} == {".gitattributes", "README.md", "config.json", "model.safetensors"}
    assert "# `river`" in files["README.md"].decode()
    # What is no part of a model is not fetched.
    files["program.py"] = b"raise SystemExit"
    assert same(SentenceLayers("hf://me/river"), here)
    names = {path.name for path in (tmp_path / "hub").rglob("*")}
    assert "models--me--river" in names and "program.py" not in names
    # Without a network the cache of the library will do.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    files.clear()
    assert same(SentenceLayers("hf://me/river"), here)
    assert ElmoEmbedder.from_pretrained("hf://me/river").embed_sentence(["a"]).shape == (3, 1, 8)


def test_a_model_card_of_the_hub_stays(hub: LocalHub) -> None:
    elmo = Elmo.from_pretrained(CHARACTERS, 2).eval()
    assert elmo.push_to_hub("me/two") == "hf://me/two"
    hub.repositories["me/two"]["README.md"] = b"license: mit"
    ElmoEmbedder(weight_file=CHARACTERS).push_to_hub("me/two")
    assert hub.repositories["me/two"]["README.md"] == b"license: mit"
    elmo.push_to_hub("me/two")
    again = Elmo.from_pretrained("hf://me/two").eval()
    ids = batch_to_ids(SENTENCES)
    pairs = zip(elmo(ids)["elmo_representations"], again(ids)["elmo_representations"], strict=True)
    assert all(torch.equal(*pair) for pair in pairs)


def test_a_model_that_cannot_be_had_is_an_error(
    hub: LocalHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="hf://river: expected the address of a model"):
        read_bilm("hf://river")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigurationError, match="me/none: it can't be fetched: .*Is the name"):
        read_bilm("hf://me/none")


def test_a_push_that_is_refused_is_an_error(hub: LocalHub) -> None:
    hub.status = 403
    with pytest.raises(ConfigurationError, match="me/river: it can't be uploaded: .*Log in by"):
        push_folder(lambda folder: folder.mkdir(), "me/river")
