import copy
import json
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance, Vocabulary
from allennlp.models import Model
from allennlp.models.archival import load_archive
from allennlp.modules.token_embedders import TokenEmbedder
from allennlp.predictors import Predictor

from elmo_scratch.data.readers import ag_news_rows
from elmo_scratch.embedders import BiLmEmbedder
from elmo_scratch.embedders.layer_cache import MemoryStore
from elmo_scratch.interop import PretrainedBiLm
from elmo_scratch.modules import LayerMix
from tests import FIXTURES_ROOT
from tests.tiny_training import BILM_WIDTH, CONFIGS, EXT_VARS, params_on_fixtures, train

DEV = FIXTURES_ROOT / "news" / "dev.csv"

# Two texts of a task. The biLM knows all words but the last one, of "a zzyzx".
TEXTS = [["the", "bank", "river"], ["a", "zzyzx"]]


@pytest.fixture
def vocab() -> Vocabulary:
    """The task's own vocabulary, in an order of its own."""
    return Vocabulary(tokens_to_add={"tokens": ["zzyzx", "river", "a", "bank", "the"]})


@pytest.fixture
def embedder(vocab: Vocabulary, bilm_archive: Path) -> BiLmEmbedder:
    return BiLmEmbedder(vocab, pretrained_file=str(bilm_archive))


def ids_of(texts: List[List[str]], vocab: Vocabulary) -> torch.Tensor:
    rows = [torch.tensor([vocab.get_token_index(word) for word in text]) for text in texts]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def layers_of(pretrained: PretrainedBiLm, text: List[str]) -> torch.Tensor:
    """The biLM's own layers of one text alone, shape `(layers, tokens, width)`."""
    ids = ids_of([text], pretrained.vocab)
    with torch.no_grad():
        return pretrained.bilm(ids, ids > 0).layers[:, 0, 1:-1]


@pytest.fixture
def carrying_archive(bilm_archive: Path, tmp_path: Path) -> Path:
    """The same biLM, with a config that carries its state."""
    with tarfile.open(bilm_archive) as archive:
        archive.extractall(tmp_path / "carrying", filter="data")
    config = tmp_path / "carrying" / "config.json"
    settings = json.loads(config.read_text("utf-8"))
    settings["model"]["bilm"]["state"] = "carry"
    config.write_text(json.dumps(settings), "utf-8")
    return config.parent


def test_texts_start_from_what_the_config_says(
    carrying_archive: Path, embedder: BiLmEmbedder, vocab: Vocabulary
) -> None:
    def twice(**settings: Any) -> List[torch.Tensor]:
        carrying = BiLmEmbedder(vocab, pretrained_file=str(carrying_archive), **settings)
        return [carrying(ids_of(TEXTS, vocab)) for _ in range(2)]

    expected = embedder(ids_of(TEXTS, vocab))
    for settings in ({}, {"state": "carry"}):
        first, second = twice(**settings)
        assert torch.equal(first, expected)
        assert not torch.allclose(second, expected, atol=1e-3)
    for vectors in (*twice(state="reset"), *twice(state="reset", keep_layers=MemoryStore())):
        assert torch.equal(vectors, expected)


@pytest.mark.parametrize("state", ["warm", "cold"])
def test_a_state_that_the_bilm_lacks_is_an_error(
    state: str, vocab: Vocabulary, bilm_archive: Path
) -> None:
    message = f'expected a `state` "reset" or "carry", .* but got "{state}" for one .* "reset"'
    with pytest.raises(ConfigurationError, match=message):
        BiLmEmbedder(vocab, pretrained_file=str(bilm_archive), state=state)


def test_vectors_are_the_mix_of_the_bilms_layers(
    embedder: BiLmEmbedder, vocab: Vocabulary, pretrained: PretrainedBiLm
) -> None:
    embedder.mix.weights.data = torch.tensor([1.0, 2.0, 5.0]).log()  # shares 1/8, 2/8, 5/8
    embedder.mix.gamma.data = torch.tensor(3.0)
    embedded = embedder(ids_of(TEXTS, vocab))
    assert embedded.shape == (2, 3, BILM_WIDTH)
    assert embedder.get_output_dim() == BILM_WIDTH
    for row, text in enumerate(TEXTS):
        first, second, third = layers_of(pretrained, text)
        expected = 3 * (first + 2 * second + 5 * third) / 8
        assert torch.allclose(embedded[row, : len(text)], expected, atol=1e-6)
    assert embedded[1, 2].tolist() == [0.0] * BILM_WIDTH


def test_words_that_join_on_another_device_go_there(
    embedder: BiLmEmbedder, vocab: Vocabulary
) -> None:
    embedder.to("meta").extend_vocab(vocab)
    assert {tensor.device.type for tensor in (*embedder.buffers(), *embedder.parameters())} == {
        "meta"
    }


@pytest.mark.parametrize("mix", sorted(LayerMix.list_available()))
def test_every_mix_leaves_padding_zero(mix: str, vocab: Vocabulary, bilm_archive: Path) -> None:
    params = Params(
        {"type": "elmo_scratch", "pretrained_file": str(bilm_archive), "mix": {"type": mix}}
    )
    embedded = TokenEmbedder.from_params(params, vocab=vocab)(ids_of(TEXTS, vocab))
    assert embedded[1, 2].tolist() == [0.0] * BILM_WIDTH
    assert embedded[1, 1].abs().sum() > 0


def test_a_second_mix_gives_a_second_vector_behind_the_first(
    vocab: Vocabulary, bilm_archive: Path, pretrained: PretrainedBiLm
) -> None:
    params = Params(
        {
            "type": "elmo_scratch",
            "pretrained_file": str(bilm_archive),
            "mix": {"type": "top"},
            "output_mix": {"type": "mean"},
        }
    )
    embedder = TokenEmbedder.from_params(params, vocab=vocab)
    assert embedder.get_output_dim() == 2 * BILM_WIDTH
    calls = []
    embedder.bilm.register_forward_hook(lambda *_: calls.append(1))
    embedded = embedder(ids_of(TEXTS, vocab))
    assert len(calls) == 1
    assert embedded.shape == (2, 3, 2 * BILM_WIDTH)
    for row, text in enumerate(TEXTS):
        layers = layers_of(pretrained, text)
        expected = torch.cat([layers[-1], layers.mean(dim=0)], dim=-1)
        assert torch.allclose(embedded[row, : len(text)], expected, atol=1e-6)
    assert not embedded[1, 2].any()


def test_a_word_that_only_the_bilm_knows_is_known(
    embedder: BiLmEmbedder, vocab: Vocabulary, pretrained: PretrainedBiLm
) -> None:
    # The task's vocabulary lacked "goalkeeper" until the embedder joined the biLM's words to it.
    text = ["the", "goalkeeper"]
    first, second, third = layers_of(pretrained, text)
    assert torch.allclose(
        embedder(ids_of([text], vocab))[0], (first + second + third) / 3, atol=1e-6
    )
    assert not torch.allclose(first[1], layers_of(pretrained, ["the", "zzyzx"])[0, 1])


def test_words_of_the_task_keep_their_ids(bilm_archive: Path, vocab: Vocabulary) -> None:
    before = dict(vocab.get_token_to_index_vocabulary("tokens"))
    BiLmEmbedder(vocab, pretrained_file=str(bilm_archive))
    after = vocab.get_token_to_index_vocabulary("tokens")
    assert {word: after[word] for word in before} == before


def test_a_vocabulary_that_grows_later_is_followed(
    embedder: BiLmEmbedder, vocab: Vocabulary
) -> None:
    vocab.add_tokens_to_namespace(["latecomer"], "tokens")
    embedder.extend_vocab(vocab)
    assert torch.equal(
        embedder(ids_of([["latecomer"]], vocab)), embedder(ids_of([["zzyzx"]], vocab))
    )


def test_frozen_the_bilm_gets_no_gradient_but_the_mix_does(
    embedder: BiLmEmbedder, vocab: Vocabulary
) -> None:
    embedder(ids_of(TEXTS, vocab)).sum().backward()
    assert not any(parameter.requires_grad for parameter in embedder.bilm.parameters())
    assert all(parameter.grad is None for parameter in embedder.bilm.parameters())
    for name, parameter in embedder.mix.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name


def test_frozen_the_bilm_drops_nothing_in_training(
    embedder: BiLmEmbedder, vocab: Vocabulary
) -> None:
    assert embedder.bilm.left_to_right.dropout.p == 0.1
    ids = ids_of(TEXTS, vocab)
    evaluated = embedder.eval()(ids)
    assert torch.equal(embedder.train()(ids), evaluated)


def test_frozen_the_bilm_drops_nothing_inside_a_model_in_training(embedder: BiLmEmbedder) -> None:
    model = torch.nn.Sequential(embedder).train()
    assert embedder.training and not embedder.bilm.training
    model.eval().train()
    assert not embedder.bilm.training


def test_fine_tuned_every_parameter_gets_a_gradient(vocab: Vocabulary, bilm_archive: Path) -> None:
    torch.manual_seed(13)
    embedder = BiLmEmbedder(vocab, pretrained_file=str(bilm_archive), requires_grad=True)
    embedder(ids_of(TEXTS, vocab)).pow(2).sum().backward()
    for name, parameter in embedder.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name


def test_a_bilm_that_is_thawed_later_is_trained(vocab: Vocabulary, bilm_archive: Path) -> None:
    embedder = BiLmEmbedder(vocab, pretrained_file=str(bilm_archive)).train()
    assert not embedder.bilm.training and not embedder.bilm.left_to_right.training
    embedder.bilm.requires_grad_(True)
    assert embedder.train().bilm.training
    embedder(ids_of(TEXTS, vocab)).pow(2).sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in embedder.parameters())


def test_fine_tuned_the_bilm_drops_in_training_only(vocab: Vocabulary, bilm_archive: Path) -> None:
    embedder = BiLmEmbedder(vocab, pretrained_file=str(bilm_archive), requires_grad=True)
    ids = ids_of(TEXTS, vocab)
    assert not torch.equal(embedder(ids), embedder(ids))
    embedder.eval()
    assert torch.equal(embedder(ids), embedder(ids))


def test_dropout_drops_from_the_mixed_vectors(vocab: Vocabulary, bilm_archive: Path) -> None:
    embedder = BiLmEmbedder(vocab, pretrained_file=str(bilm_archive), dropout=0.5)
    ids = ids_of(TEXTS, vocab)
    whole, dropped = embedder.eval()(ids), embedder.train()(ids)
    kept = dropped != 0
    assert 0.3 < kept[0].float().mean() < 0.7
    assert torch.allclose(dropped[kept], 2 * whole[kept])


def test_a_namespace_that_no_indexer_writes_is_an_error(
    vocab: Vocabulary, bilm_archive: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"'cased', but no token indexer.*\['tokens'\]"):
        BiLmEmbedder(vocab, pretrained_file=str(bilm_archive), namespace="cased")


def test_ids_of_a_larger_namespace_are_an_error_that_names_ones_own(
    embedder: BiLmEmbedder, vocab: Vocabulary
) -> None:
    size = vocab.get_vocab_size("tokens")
    with pytest.raises(
        ConfigurationError, match=f"'tokens', which has {size}, but got the id 9999"
    ):
        embedder(torch.tensor([[2, 9999]]))


def test_without_an_archive_there_is_nothing_to_embed_with(vocab: Vocabulary) -> None:
    with pytest.raises(ConfigurationError, match="needs `pretrained_file`"):
        BiLmEmbedder(vocab)


def test_without_an_archive_or_a_blueprint_in_the_folder_there_is_neither(
    vocab: Vocabulary, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        BiLmEmbedder(vocab, serialization_dir=tmp_path)


class Trained(NamedTuple):
    """A classifier after training, its archive, and what it says about the fixtures' news."""

    model: Model
    archive: Path
    predictions: List[Dict[str, Any]]


def embedders_in(model: Model) -> List[BiLmEmbedder]:
    return [module for module in model.modules() if isinstance(module, BiLmEmbedder)]


def predictions_of(model: Model, reader: DatasetReader) -> List[Dict[str, Any]]:
    instances: List[Instance] = list(reader.read(DEV))[:7]
    for instance in instances:
        reader.apply_token_indexers(instance)
    return model.eval().forward_on_instances(instances)


def are_equal(one: List[Dict[str, Any]], other: List[Dict[str, Any]]) -> bool:
    """Whether two lists of predictions agree in every bit."""
    return len(one) == len(other) > 0 and all(
        row["probabilities"] == twin["probabilities"] for row, twin in zip(one, other, strict=True)
    )


def trained(params: Params, folder: Path) -> Trained:
    reader = DatasetReader.from_params(copy.deepcopy(params["dataset_reader"]))
    model = train(params, folder)
    return Trained(model, folder / "model.tar.gz", predictions_of(model, reader))


@pytest.fixture(scope="module")
def orphan(bilm_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A classifier whose biLM's archive was deleted after the training."""
    folder = tmp_path_factory.mktemp("orphan")
    parent = Path(shutil.copy(bilm_archive, folder / "bilm.tar.gz"))
    config = CONFIGS / "ag_news" / "elmo_trainable.jsonnet"
    classifier = trained(params_on_fixtures(config, parent), folder / "run")
    parent.unlink()
    return classifier


def test_a_classifier_loads_after_the_bilms_archive_was_deleted(orphan: Trained) -> None:
    archive = load_archive(orphan.archive)
    assert are_equal(predictions_of(archive.model, archive.dataset_reader), orphan.predictions)


def test_a_classifier_loads_in_another_directory(
    orphan: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(orphan.archive, tmp_path / "moved.tar.gz")
    monkeypatch.chdir(tmp_path)
    run = orphan.archive.parent
    os.rename(run, run.with_name("away"))
    try:
        archive = load_archive("moved.tar.gz")
    finally:
        os.rename(run.with_name("away"), run)
    assert are_equal(predictions_of(archive.model, archive.dataset_reader), orphan.predictions)


def test_the_frozen_bilm_is_in_the_archive_as_it_was(
    orphan: Trained, pretrained: PretrainedBiLm
) -> None:
    (embedder,) = embedders_in(load_archive(orphan.archive).model)
    weights = embedder.bilm.state_dict()
    for name, tensor in pretrained.bilm.state_dict().items():
        assert torch.equal(weights[name], tensor), name


def first_rows(count: int, path: Path) -> str:
    """A file with the first rows of the fixtures' news."""
    lines = Path(EXT_VARS["NEWS_TRAIN"]).read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:count]), encoding="utf-8")
    return str(path)


def classifier_params(
    indexers: Dict[str, Any], embedders: Dict[str, Any], width: int, folder: Path
) -> Params:
    """A classifier that does no more than average its embedded tokens."""
    rows = first_rows(29, folder / "rows.csv")
    return Params(
        {
            "dataset_reader": {"type": "ag_news", "token_indexers": indexers},
            "train_data_path": rows,
            "validation_data_path": rows,
            "model": {
                "type": "elmo_scratch_classifier",
                "text_field_embedder": {"token_embedders": embedders},
                "seq2vec_encoder": {"type": "boe", "embedding_dim": width},
            },
            "data_loader": {"batch_size": 7},
            "trainer": {"num_epochs": 1, "optimizer": "adam"},
        }
    )


def test_a_loaded_classifier_knows_words_that_only_the_bilm_knew(
    bilm_archive: Path, tmp_path: Path
) -> None:
    # The rows of the classifier's training lack "goalkeeper", which the biLM's training had.
    indexers = {"tokens": {"type": "single_id", "lowercase_tokens": True}}
    embedders = {"tokens": {"type": "elmo_scratch", "pretrained_file": str(bilm_archive)}}
    params = classifier_params(indexers, embedders, BILM_WIDTH, tmp_path)
    assert "goalkeeper" not in Path(params["train_data_path"]).read_text().lower()
    train(params, tmp_path / "run")
    predictor = Predictor.from_path(str(tmp_path / "run" / "model.tar.gz"))
    known, unknown, other = (
        predictor.predict_json({"description": text})
        for text in ("The goalkeeper", "The zzyzx", "The yzzyx")
    )
    assert are_equal([unknown], [other])
    assert not are_equal([unknown], [known])


def test_two_embedders_of_two_namespaces_live_in_one_model(
    bilm_archive: Path, tmp_path: Path
) -> None:
    indexers = {
        "cased": {"type": "single_id", "namespace": "cased_words"},
        "lower": {"type": "single_id", "namespace": "lower_words", "lowercase_tokens": True},
    }
    embedder = {"type": "elmo_scratch", "pretrained_file": str(bilm_archive)}
    embedders = {
        "cased": {**embedder, "namespace": "cased_words", "mix": {"type": "frozen", "seed": 7}},
        "lower": {**embedder, "namespace": "lower_words"},
    }
    params = classifier_params(indexers, embedders, 2 * BILM_WIDTH, tmp_path)
    classifier = trained(params, tmp_path / "run")
    archive = load_archive(classifier.archive)
    again = predictions_of(archive.model, archive.dataset_reader)
    assert are_equal(again, classifier.predictions)
    cased, lower = embedders_in(archive.model)
    assert not torch.equal(cased.mix.shares(), lower.mix.shares())


@pytest.mark.parametrize("first, second", [("elmo", "words"), ("words", "elmo")])
def test_elmo_joins_a_words_own_vector(
    first: str, second: str, bilm_archive: Path, tmp_path: Path
) -> None:
    # Whichever is built first: the rows to predict hold words that only the biLM knows.
    indexers = {name: {"type": "single_id", "lowercase_tokens": True} for name in (first, second)}
    kinds = {
        "elmo": {"type": "elmo_scratch", "pretrained_file": str(bilm_archive)},
        "words": {"type": "embedding", "embedding_dim": 5},
    }
    embedders = {name: kinds[name] for name in (first, second)}
    params = classifier_params(indexers, embedders, BILM_WIDTH + 5, tmp_path)
    classifier = trained(params, tmp_path / "run")
    archive = load_archive(classifier.archive)
    assert are_equal(predictions_of(archive.model, archive.dataset_reader), classifier.predictions)


def test_allennlps_own_classifier_trains_with_it(bilm_archive: Path, tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    with open(data, "w", encoding="utf-8") as file:
        for row in ag_news_rows(first_rows(29, tmp_path / "rows.csv")):
            file.write(json.dumps({"text": row.description, "label": row.label}) + "\n")
    params = Params(
        {
            "dataset_reader": {
                "type": "text_classification_json",
                "tokenizer": "spacy_blank",
                "token_indexers": {"tokens": {"type": "single_id", "lowercase_tokens": True}},
            },
            "train_data_path": str(data),
            "model": {
                "type": "basic_classifier",
                "text_field_embedder": {
                    "token_embedders": {
                        "tokens": {"type": "elmo_scratch", "pretrained_file": str(bilm_archive)}
                    }
                },
                "seq2vec_encoder": {"type": "boe", "embedding_dim": BILM_WIDTH},
            },
            "data_loader": {"batch_size": 7},
            "trainer": {"num_epochs": 1, "optimizer": "adam"},
        }
    )
    model = train(params, tmp_path / "run")
    gamma = model.get_parameter("_text_field_embedder.token_embedder_tokens.mix.gamma")
    assert gamma.item() != 1.0
    label = load_archive(tmp_path / "run").model.vocab.get_token_from_index(0, "labels")
    assert label in ("World", "Sports", "Business", "Sci/Tech")
