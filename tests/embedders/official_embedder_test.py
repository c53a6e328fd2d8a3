import inspect
from pathlib import Path
from typing import Any, Dict, Optional

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch, Instance, Token, TokenIndexer, Vocabulary
from allennlp.data.fields import TextField
from allennlp.models import BasicClassifier
from allennlp.modules.seq2vec_encoders import BagOfEmbeddingsEncoder
from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder
from allennlp.modules.token_embedders import ElmoTokenEmbedder, TokenEmbedder

from elmo_scratch import LayerMix, OfficialEmbedder, batch_to_ids, read_official_bilm
from tests.tiny_elmo import (
    BATCHES,
    SENTENCES,
    WIDTH,
    OfficialFiles,
    vocabulary_of,
    word_ids,
)

IDS = batch_to_ids(SENTENCES)
MASK = (IDS > 0).any(dim=-1)


def from_config(files: OfficialFiles, folder: Any = None, **settings: Any) -> OfficialEmbedder:
    """As a training builds it, in evaluation mode."""
    config = {"type": "elmo_scratch_from_official", **settings}
    params = Params({**config, "options_file": files.options, "weight_file": files.weights})
    embedder = TokenEmbedder.from_params(params, serialization_dir=folder, vocab=Vocabulary())
    assert isinstance(embedder, OfficialEmbedder)
    return embedder.eval()


@pytest.mark.parametrize("mix", sorted(LayerMix.list_available()))
def test_vectors_are_the_mix_of_the_bilms_layers(mix: str, files: OfficialFiles) -> None:
    torch.manual_seed(13)
    embedder = from_config(files, mix={"type": mix})
    with torch.no_grad():
        layers = read_official_bilm(*files)(IDS, MASK).layers[:, :, 1:-1]
        vectors, expected = embedder(IDS), embedder.elmo.mixes[0](layers, MASK)
    assert vectors.shape == (2, 7, WIDTH)
    assert embedder.get_output_dim() == WIDTH
    assert torch.allclose(vectors[1], expected[1], atol=1e-6)
    assert torch.allclose(vectors[0, :3], expected[0, :3], atol=1e-6)
    assert not vectors[0, 3:].any()


@pytest.mark.parametrize("projection_dim", [None, 20])
def test_a_second_mix_gives_a_second_vector_behind_the_first(
    projection_dim: Optional[int], files: OfficialFiles
) -> None:
    settings = {"mix": {"type": "top"}, "output_mix": {"type": "mean"}}
    embedder = from_config(files, projection_dim=projection_dim, **settings)
    with torch.no_grad():
        layers = read_official_bilm(*files)(IDS, MASK).layers[:, :, 1:-1]
        first, second = layers[-1], layers.mean(dim=0)
        if embedder.projection is not None and embedder.output_projection is not None:
            first, second = embedder.projection(first), embedder.output_projection(second)
        vectors = embedder(IDS)
    assert embedder.get_output_dim() == vectors.size(-1) == 2 * (projection_dim or WIDTH)
    expected = torch.cat([first, second], dim=-1)
    assert torch.allclose(vectors[MASK], expected[MASK], atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"do_layer_norm": True},
        {"scalar_mix_parameters": [0.5, -1.0, 2.0]},
        {"projection_dim": 0},
        {"projection_dim": 20},
        {"projection_dim": 20, "do_layer_norm": True, "requires_grad": True},
    ],
)
def test_vectors_are_those_of_allennlps_embedder(
    settings: Dict[str, Any], files: OfficialFiles
) -> None:
    ours = from_config(files, dropout=0.0, **settings)
    theirs = ElmoTokenEmbedder(*files, dropout=0.0, **settings).eval()
    if ours.projection is not None:
        ours.projection.load_state_dict(theirs._projection.state_dict())
    assert ours.get_output_dim() == theirs.get_output_dim()
    for batch in BATCHES:
        ids = batch_to_ids(batch)
        assert torch.allclose(ours(ids), theirs(ids), atol=1e-5)
        stacked = torch.stack([ids, ids])
        assert torch.allclose(ours(stacked), theirs(stacked), atol=1e-5)


def test_words_computed_ahead_are_those_of_allennlps_embedder(files: OfficialFiles) -> None:
    vocabulary = vocabulary_of(BATCHES)
    ours = from_config(files, vocab_to_cache=vocabulary)
    theirs = ElmoTokenEmbedder(*files, vocab_to_cache=vocabulary).eval()
    for batch in BATCHES:
        ids, words = batch_to_ids(batch), word_ids(batch, vocabulary)
        assert torch.allclose(ours(ids, words), theirs(ids, words), atol=1e-5)
        assert torch.allclose(ours(torch.zeros_like(ids), words), theirs(ids, words), atol=1e-5)


def test_arguments_and_defaults_are_those_of_allennlps_embedder() -> None:
    ours = inspect.signature(OfficialEmbedder.__init__).parameters
    theirs = inspect.signature(ElmoTokenEmbedder.__init__).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    assert {name: ours[name].default for name in theirs} == {
        name: parameter.default for name, parameter in theirs.items()
    }
    for function in (OfficialEmbedder.forward, ElmoTokenEmbedder.forward):
        assert list(inspect.signature(function).parameters)[1:] == ["elmo_tokens", "word_inputs"]


@pytest.mark.parametrize("settings", [{}, {"projection_dim": 4}])
def test_its_width_has_both_names(settings: Dict[str, Any], files: OfficialFiles) -> None:
    ours = from_config(files, **settings)
    theirs = ElmoTokenEmbedder(*files, **settings)
    assert ours.output_dim == theirs.output_dim == ours.get_output_dim()


def test_dropout_drops_half_of_the_mixed_vectors(files: OfficialFiles) -> None:
    embedder = from_config(files, state="reset")
    whole, dropped = embedder(IDS), embedder.train()(IDS)
    kept = dropped != 0
    assert 0.4 < kept[1].float().mean() < 0.6
    assert torch.allclose(dropped[kept], 2 * whole[kept])


@pytest.mark.parametrize("requires_grad", [False, True])
def test_the_bilm_is_trained_on_only_if_asked(requires_grad: bool, files: OfficialFiles) -> None:
    embedder = from_config(files, requires_grad=requires_grad, projection_dim=5)
    embedder(IDS).pow(2).sum().backward()
    for name, parameter in embedder.named_parameters():
        is_trained = requires_grad or not name.startswith("elmo.bilm.")
        assert (parameter.grad is not None) is is_trained, name


@pytest.mark.parametrize("indexer", ["elmo_scratch_characters", "elmo_characters"])
def test_texts_of_both_indexers_are_embedded(indexer: str, files: OfficialFiles) -> None:
    indexers = {"elmo": TokenIndexer.from_params(Params({"type": indexer}))}
    fields = [TextField([Token(word) for word in words], indexers) for words in SENTENCES]
    batch = Batch([Instance({"text": field}) for field in fields])
    batch.index_instances(Vocabulary())
    embedder = BasicTextFieldEmbedder({"elmo": from_config(files)})
    embedded = embedder(batch.as_tensor_dict()["text"])
    assert torch.equal(embedded, from_config(files)(IDS))
    assert embedder.get_output_dim() == WIDTH


def test_products_can_run_in_bfloat16(files: OfficialFiles) -> None:
    vectors = from_config(files, matmul_dtype="bfloat16")(IDS)
    expected = from_config(files)(IDS)
    assert vectors.dtype == torch.float32 and not torch.equal(vectors, expected)
    assert torch.cosine_similarity(vectors[1], expected[1], dim=-1).min() >= 0.999


def test_words_added_to_a_vocabulary_later_do_not_matter(files: OfficialFiles) -> None:
    vocab = Vocabulary(tokens_to_add={"tokens": ["the"], "labels": ["yes", "no"]})
    embedder = from_config(files, state="reset", vocab_to_cache=["@@PADDING@@", "the"])
    text_embedder = BasicTextFieldEmbedder({"elmo": embedder})
    model = BasicClassifier(vocab, text_embedder, BagOfEmbeddingsEncoder(WIDTH))
    expected = embedder(IDS)
    vocab.add_tokens_to_namespace(["latecomer"], "tokens")
    model.extend_embedder_vocab()
    assert torch.equal(embedder(IDS), expected)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"scalar_mix_parameters": [1.0]}, "each of the 3 layers.* but got 1"),
        (
            {"scalar_mix_parameters": [1.0] * 3, "mix": {"type": "frozen"}},
            "either `mix` or `scalar_mix_parameters`, not both",
        ),
        ({"state": "warm"}, '`state` "warm" and `warm_up_file` need each other'),
        ({"warm_up_file": "text.txt"}, '`state` "warm" and `warm_up_file` need each other'),
        ({"state": "warm", "warm_up_file": "/no/such.txt"}, "/no/such.txt: there is no such file"),
    ],
)
def test_settings_that_do_not_go_together_are_an_error(
    settings: Dict[str, Any], message: str, files: OfficialFiles
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        from_config(files, **settings)


@pytest.mark.parametrize("setting", ["state", "matmul_dtype"])
def test_a_setting_that_does_not_exist_is_an_error(setting: str, files: OfficialFiles) -> None:
    with pytest.raises((ConfigurationError, ValueError), match=f"`{setting}` among .* 'other'"):
        from_config(files, **{setting: "other"})


@pytest.mark.parametrize("missing", OfficialFiles._fields)
@pytest.mark.parametrize("is_in_training", [False, True])
def test_a_missing_file_is_named(
    is_in_training: bool, missing: str, files: OfficialFiles, tmp_path: Path
) -> None:
    absent = files._replace(**{missing: f"/no/such/{missing}"})
    with pytest.raises(ConfigurationError, match=f"/no/such/{missing}: there is no such file"):
        from_config(absent, tmp_path if is_in_training else None)
