"""Every entry point takes every kind of model, and what it saves gives the same vectors."""

from pathlib import Path
from typing import Any, Dict, List, Set

import numpy
import pytest
import torch
from allennlp.common import Lazy, Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_scratch import (
    BiLmEmbedder,
    Elmo,
    ElmoEmbedder,
    LoadedBiLm,
    SentenceLayers,
    batch_to_ids,
    read_bilm,
)
from elmo_scratch.interop import export_bilm, export_model_folder
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.mixes import MeanMix, TrainableMix
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.tiny_archives import unpack

GOLDEN = PROJECT_ROOT / "tests" / "golden"
CHARACTERS, WORDS = GOLDEN / "characters" / "model.tar.gz", GOLDEN / "words" / "model.tar.gz"
SENTENCES = [["The", "river", "naïve"], ["a"]]
IDS = batch_to_ids(SENTENCES)


@pytest.fixture(params=["archive", "training", "task", "folder", "official"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The same biLM of characters, in a file or folder of each kind."""
    place: Path = tmp_path / request.param
    if request.param == "archive":
        return CHARACTERS
    if request.param == "training":
        return unpack(CHARACTERS, place)
    if request.param == "task":
        return GOLDEN / "classifiers" / "characters.tar.gz"  # over the biLM, which stayed frozen
    (export_model_folder if request.param == "folder" else export_bilm)(CHARACTERS, place)
    return place


@pytest.fixture(scope="module")
def bilm() -> BiLm:
    return read_bilm(CHARACTERS).bilm


def layers_of(bilm: BiLm) -> torch.Tensor:
    with torch.no_grad():
        return bilm(IDS, (IDS > 0).any(dim=-1)).layers


def test_every_entry_point_takes_every_kind_of_model(model: Path, bilm: BiLm) -> None:
    layers = layers_of(bilm)  # (layers, batch, positions, width)
    first = layers[:, 0, 1:4].numpy()
    assert numpy.array_equal(SentenceLayers(model)(SENTENCES)[0], first)
    assert numpy.array_equal(SentenceLayers.from_archive(model, state="reset")(SENTENCES)[0], first)
    assert numpy.array_equal(SentenceLayers.from_pretrained(str(model))(SENTENCES)[0], first)
    named = ElmoEmbedder(weight_file=model, state="reset")
    for embedder in (named, ElmoEmbedder.from_pretrained(model)):
        assert numpy.array_equal(embedder.embed_sentence(SENTENCES[0]), first)
    mean = layers.mean(dim=0)[0, 1:4]
    for elmo in (Elmo(None, model, 1, state="reset"), Elmo.from_pretrained(model)):
        with torch.no_grad():
            (mixed,) = elmo.eval()(IDS)["elmo_representations"]
        assert torch.allclose(mixed[0], mean, atol=1e-6)
    task = BiLmEmbedder(Vocabulary(), pretrained_file=str(model)).eval()
    assert torch.allclose(task(IDS)[0], mean, atol=1e-6)


def test_a_tasks_embedder_is_built_again_by_its_folder_alone(model: Path, tmp_path: Path) -> None:
    task = tmp_path / "run"
    embedder = BiLmEmbedder(Vocabulary(), pretrained_file=str(model), serialization_dir=task)
    again = BiLmEmbedder(Vocabulary(), serialization_dir=task)
    again.load_state_dict(embedder.state_dict())
    assert torch.equal(embedder.eval()(IDS), again.eval()(IDS))
    assert again.bilm.state_memory.state == embedder.bilm.state_memory.state


@pytest.mark.parametrize("model", [CHARACTERS, WORDS])
@pytest.mark.parametrize("entry", [SentenceLayers, ElmoEmbedder])
def test_what_is_saved_gives_the_same_vectors(entry: Any, model: Path, tmp_path: Path) -> None:
    def vectors(one: Any) -> List[numpy.ndarray]:
        return one.embed_batch(SENTENCES) if entry is ElmoEmbedder else one(SENTENCES)

    before = entry.from_pretrained(model)
    before.save_pretrained(tmp_path / "folder")
    after = entry.from_pretrained(tmp_path / "folder")
    assert all(map(numpy.array_equal, vectors(before), vectors(after)))
    with pytest.raises(ConfigurationError, match="or replace them by `overwrite=True`"):
        before.save_pretrained(tmp_path / "folder")
    before.save_pretrained(tmp_path / "folder", overwrite=True)


@pytest.mark.parametrize("model", [CHARACTERS, WORDS])
def test_a_saved_bilm_comes_back_to_the_bit(model: Path, tmp_path: Path) -> None:
    before = LoadedBiLm.from_pretrained(model)
    before.save_pretrained(tmp_path / "folder")
    after = LoadedBiLm.from_pretrained(tmp_path / "folder")
    vectors = (
        SentenceLayers(one.bilm, one.word_indexer, one.files)(SENTENCES) for one in (before, after)
    )
    assert all(map(numpy.array_equal, *vectors))
    assert before.bilm.state_dict().keys() == after.bilm.state_dict().keys()
    assert before.softmax.tensors.keys() == after.softmax.tensors.keys() != set()
    for name, tensor in before.softmax.tensors.items():
        assert torch.equal(tensor, after.softmax.tensors[name])
    # The softmax is a third of a small model: who needs the layers alone may leave it where it is.
    assert not LoadedBiLm.from_pretrained(model, with_softmax=False).softmax.tensors
    with pytest.raises(ConfigurationError, match="or replace them by `overwrite=True`"):
        before.save_pretrained(tmp_path / "folder")
    after.save_pretrained(tmp_path / "folder", dtype="float16", overwrite=True)
    halved = read_bilm(tmp_path / "folder").bilm.state_dict()
    for name, tensor in before.bilm.state_dict().items():
        assert torch.equal(tensor.half().float(), halved[name])


def test_the_state_is_the_one_that_was_saved(tmp_path: Path) -> None:
    ElmoEmbedder(weight_file=CHARACTERS).save_pretrained(tmp_path / "carry")
    assert SentenceLayers(tmp_path / "carry").state == "carry"
    assert SentenceLayers(tmp_path / "carry", state="reset").state == "reset"
    with pytest.raises(ValueError, match="expected a `state` among"):
        Elmo.from_pretrained(tmp_path / "carry", state="cold")


def test_an_elmo_is_saved_with_its_mixes(tmp_path: Path) -> None:
    elmo = Elmo.from_pretrained(
        CHARACTERS, 2, dropout=0.25, do_layer_norm=True, keep_sentence_boundaries=True
    ).eval()
    with torch.no_grad():
        for mix in elmo.mixes:
            mix.weights.normal_()
            mix.gamma.fill_(1.75)
    elmo.save_pretrained(tmp_path / "folder")
    again = Elmo.from_pretrained(tmp_path / "folder").eval()
    before, after = elmo(IDS), again(IDS)
    assert torch.equal(before["mask"], after["mask"])
    pairs = list(zip(before["elmo_representations"], after["elmo_representations"], strict=True))
    assert len(pairs) == 2 and all(torch.equal(*pair) for pair in pairs)
    assert again.dropout.p == 0.25
    # Whoever asks for other mixes gets new ones.
    other = Elmo.from_pretrained(tmp_path / "folder", 1, keep_sentence_boundaries=False).eval()
    assert len(other.mixes) == 1 and float(other.mixes[0].get_parameter("gamma")) == 1.0
    assert other(IDS)["elmo_representations"][0].shape == (2, 3, 8)
    # The layers are there for those who mix none.
    assert numpy.array_equal(SentenceLayers(tmp_path / "folder")([["a"]])[0].shape, (3, 1, 8))


@pytest.mark.parametrize(
    "settings, fixed",
    [
        ({"scalar_mix_parameters": [1.0, 2.0, 0.0]}, {"0.weights", "0.gamma"}),
        ({"mix": Lazy(TrainableMix, Params({"gamma": 2.0}))}, {"0.gamma"}),
        ({}, set()),
    ],
)
def test_what_is_fixed_of_a_mix_stays_so(
    settings: Dict[str, Any], fixed: Set[str], tmp_path: Path
) -> None:
    elmo = Elmo.from_pretrained(CHARACTERS, 1, **settings).eval()
    elmo.save_pretrained(tmp_path / "folder")
    again = Elmo.from_pretrained(tmp_path / "folder").eval()
    for one in (elmo, again):
        weights = one.mixes.named_parameters()
        assert {name for name, weight in weights if not weight.requires_grad} == fixed
    before, after = elmo(IDS), again(IDS)
    assert torch.equal(before["elmo_representations"][0], after["elmo_representations"][0])


def test_an_elmo_of_words_knows_its_words_when_it_is_saved(tmp_path: Path) -> None:
    Elmo.from_pretrained(WORDS).save_pretrained(tmp_path / "folder")
    saved, before = SentenceLayers(tmp_path / "folder"), SentenceLayers(WORDS)
    assert all(map(numpy.array_equal, saved(SENTENCES), before(SENTENCES)))


def test_what_a_folder_cannot_hold_of_an_elmo_is_told(tmp_path: Path, bilm: BiLm) -> None:
    for elmo in (
        Elmo(None, None, 1, module=bilm, mix=Lazy(MeanMix)),
        Elmo(None, None, 0, module=_Other()),
    ):
        with pytest.raises(ValueError, match="expected a `BiLm` and mixes of the kind `trainable`"):
            elmo.save_pretrained(tmp_path / "folder")


class _Other(torch.nn.Module):
    num_layers = 3


def test_a_bilm_needs_its_indexer_and_a_name_needs_nothing(bilm: BiLm) -> None:
    with pytest.raises(ValueError, match="or a `BiLm` with its `word_indexer` and `files`"):
        SentenceLayers(bilm)
    with pytest.raises(ConfigurationError, match="nowhere: there is no such"):
        SentenceLayers("nowhere")


def test_a_model_of_elmoformanylangs_is_one_for_sentences(tmp_path: Path) -> None:
    folder = FIXTURES_ROOT / "elmo_for_many_langs" / "both"
    named = SentenceLayers.from_many_langs(folder, state="reset")
    layers = SentenceLayers(folder)
    assert layers.state == "reset" and layers.identity == named.identity
    assert all(map(numpy.array_equal, layers(SENTENCES), named(SENTENCES)))
    with pytest.raises(ConfigurationError, match="one of ELMoForManyLangs. .* read it"):
        Elmo.from_pretrained(folder)
    with pytest.raises(ValueError, match="DictionaryWordIndexer, which a model folder can't hold"):
        layers.save_pretrained(tmp_path / "folder")
