import copy
import json
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy
import pytest
import torch
from allennlp.common import Lazy, Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader
from allennlp.models import Model
from allennlp.models.archival import load_archive
from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_scratch.data import AgNewsReader
from elmo_scratch.embedders import BiLmEmbedder, LayerFileEmbedder, LayerFileIndexer
from elmo_scratch.embedders.layer_file import shared_token_numbers
from elmo_scratch.interop import LayerFileFacts, LayerFileWriter, PretrainedBiLm
from elmo_scratch.modules.mixes import FrozenMix, LayerMix
from tests.interop.layer_files.tiny_layers import FACTS, WIDTH, vectors_of, write_layers
from tests.tiny_training import BILM_WIDTH, EXT_VARS, train

SENTENCES = ["The river rose .", "a", "x y z"]

in_memory = pytest.mark.parametrize("in_memory", [False, True])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_layers(tmp_path / "layers.hdf5", SENTENCES)


def numbers_of(texts: List[str], path: Path) -> torch.Tensor:
    """What the indexer makes of texts, shape `(batch, tokens)`."""
    numbers = shared_token_numbers(str(path))
    rows = [torch.tensor(numbers.of(text.split()), dtype=torch.long) for text in texts]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


@in_memory
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vectors_are_the_mix_of_the_files_layers(
    in_memory: bool, dtype: str, tmp_path: Path
) -> None:
    facts = FACTS._replace(dtype=dtype)
    path = write_layers(tmp_path / "layers.hdf5", SENTENCES, facts)
    embedder = LayerFileEmbedder(str(path), in_memory=in_memory)
    embedder.mix.weights.data = torch.tensor([1.0, 2.0, 5.0]).log()  # shares 1/8, 2/8, 5/8
    embedder.mix.gamma.data = torch.tensor(3.0)
    texts = ["x y z", "", "a", "The river rose .", "a"]
    embedded = embedder(numbers_of(texts, path))
    assert embedded.shape == (5, 4, WIDTH)
    assert embedded.dtype == torch.float32
    assert embedder.get_output_dim() == WIDTH
    for row, text in enumerate(texts):
        count = len(text.split())
        first, second, third = torch.from_numpy(vectors_of(text, facts).astype("float32"))
        expected = 3 * (first + 2 * second + 5 * third) / 8
        assert torch.allclose(embedded[row, :count], expected, atol=1e-6)
        assert not embedded[row, count:].any()


@in_memory
@pytest.mark.parametrize("kept", ["top", "average"])
def test_a_single_layer_is_taken_as_it_is(in_memory: bool, kept: str, tmp_path: Path) -> None:
    facts = FACTS._replace(kept=kept)
    path = write_layers(tmp_path / "layers.hdf5", SENTENCES, facts)
    embedder = LayerFileEmbedder(str(path), in_memory=in_memory)
    assert list(embedder.parameters()) == []
    embedded = embedder(numbers_of(["a", "x y z"], path))
    assert torch.equal(embedded[1], torch.from_numpy(vectors_of("x y z", facts)))
    assert not embedded[0, 1:].any()


def test_a_second_mix_gives_a_second_vector_behind_the_first(path: Path) -> None:
    embedder = LayerFileEmbedder(
        str(path), mix=Lazy(LayerMix.by_name("top")), output_mix=Lazy(LayerMix.by_name("mean"))
    )
    assert embedder.get_output_dim() == 2 * WIDTH
    embedded = embedder(numbers_of(["x y z", "a"], path))
    layers = torch.from_numpy(vectors_of("x y z", FACTS))
    expected = torch.cat([layers[-1], layers.mean(dim=0)], dim=-1)
    assert torch.allclose(embedded[0], expected, atol=1e-6)
    assert not embedded[1, 1:].any()


def test_a_mix_of_a_single_layer_is_an_error(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", SENTENCES, FACTS._replace(kept="top"))
    with pytest.raises(ConfigurationError, match="nothing to mix.*Leave out `mix` and"):
        LayerFileEmbedder(str(path), mix=Lazy(FrozenMix))


def test_a_file_of_pooled_vectors_is_an_error(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", SENTENCES, FACTS._replace(pool="max"))
    with pytest.raises(ConfigurationError, match="they were pooled"):
        LayerFileEmbedder(str(path))


def test_a_missing_file_is_an_error_that_helps(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="none.hdf5: .* whenever it is loaded"):
        LayerFileEmbedder(str(tmp_path / "none.hdf5"))


@pytest.mark.parametrize("mix", ["trainable", "frozen", "function"])
def test_every_mix_leaves_padding_zero(mix: str, path: Path) -> None:
    params = Params({"type": "elmo_scratch_layer_file", "file": str(path), "mix": {"type": mix}})
    embedded = TokenEmbedder.from_params(params)(numbers_of(["x y z", "a"], path))
    assert embedded[0].all()
    assert embedded[1, 0].all() and not embedded[1, 1:].any()


def test_the_mix_gets_gradients(path: Path) -> None:
    embedder = LayerFileEmbedder(str(path))
    embedder(numbers_of(SENTENCES, path)).pow(2).sum().backward()
    for name, parameter in embedder.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name


def test_dropout_drops_in_training_only(path: Path) -> None:
    embedder = LayerFileEmbedder(str(path), dropout=0.5)
    numbers = numbers_of(SENTENCES, path)
    whole, dropped = embedder.eval()(numbers), embedder.train()(numbers)
    assert (whole != 0).sum() > (dropped != 0).sum() > 0


def test_a_batch_without_tokens_is_embedded(path: Path) -> None:
    embedder = LayerFileEmbedder(str(path))
    assert embedder(torch.zeros(2, 3, dtype=torch.long)).tolist() == [[[0.0] * WIDTH] * 3] * 2
    assert embedder(torch.zeros(2, 0, dtype=torch.long)).shape == (2, 0, WIDTH)


def test_texts_in_lists_are_embedded(path: Path) -> None:
    numbers = torch.stack([numbers_of(["a", "x y z"], path), numbers_of(["x y z", "a"], path)])
    embedder = LayerFileEmbedder(str(path))
    fields = BasicTextFieldEmbedder({"elmo": embedder})
    embedded = fields({"elmo": {"token_numbers": numbers}}, num_wrapping_dims=1)
    assert embedded.shape == (2, 2, 3, WIDTH)
    assert torch.equal(embedded, embedder(numbers))
    assert torch.equal(embedded[0, 1], embedder(numbers_of(["x y z"], path))[0])


def write_layers_of(pretrained: PretrainedBiLm, texts: List[str], path: Path) -> None:
    """A file of the layers of a biLM, made in one batch."""
    rows = [
        torch.tensor([pretrained.vocab.get_token_index(word) for word in text.split()])
        for text in texts
    ]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    with torch.no_grad():
        layers = pretrained.bilm(ids, ids > 0).layers
    facts = LayerFileFacts("", "", "all", None, layers.shape[0], BILM_WIDTH, "float32", "carry")
    with LayerFileWriter.open(path, facts) as writer:
        for row, words in enumerate(rows):
            writer.write(str(row), layers[:, row, 1 : 1 + len(words)].numpy())
        writer.write_index((text, str(row)) for row, text in enumerate(texts))


def test_vectors_are_those_of_the_frozen_bilm(
    pretrained: PretrainedBiLm, bilm_archive: Path, tmp_path: Path
) -> None:
    texts = ["the bank river", "a goalkeeper"]
    write_layers_of(pretrained, texts, tmp_path / "layers.hdf5")
    vocab = Vocabulary(tokens_to_add={"tokens": " ".join(texts).split()})
    mix: Lazy[LayerMix] = Lazy(FrozenMix, seed=7)  # type: ignore[arg-type]
    bilm = BiLmEmbedder(vocab, pretrained_file=str(bilm_archive), mix=mix)
    ids = [[vocab.get_token_index(word) for word in text.split()] for text in texts]
    expected = bilm(torch.tensor([ids[0], [*ids[1], 0]]))
    embedder = LayerFileEmbedder(str(tmp_path / "layers.hdf5"), mix=mix)
    embedded = embedder(numbers_of(texts, tmp_path / "layers.hdf5"))
    assert torch.allclose(embedded, expected, atol=1e-6)


@pytest.mark.parametrize(
    "change", [{"model": "sha256:89ab"}, {"kept": "average"}, {"state": "warm"}]
)
def test_weights_for_the_layers_of_another_bilm_are_refused(
    change: Dict[str, Any], tmp_path: Path
) -> None:
    facts = FACTS._replace(kept="top")
    one = write_layers(tmp_path / "one.hdf5", SENTENCES, facts)
    same = write_layers(tmp_path / "same.hdf5", ["new text"], facts._replace(export=""))
    other = write_layers(tmp_path / "other.hdf5", SENTENCES, facts._replace(**change))
    weights = LayerFileEmbedder(str(one)).state_dict()
    LayerFileEmbedder(str(same)).load_state_dict(weights)
    with pytest.raises(ConfigurationError, match="other.hdf5: .*another biLM"):
        torch.nn.Sequential(LayerFileEmbedder(str(other))).load_state_dict(
            {f"0.{name}": tensor for name, tensor in weights.items()}
        )


def test_where_the_bilm_is_unknown_weights_are_not_refused(tmp_path: Path) -> None:
    known = write_layers(tmp_path / "known.hdf5", SENTENCES)
    unknown = write_layers(tmp_path / "unknown.hdf5", SENTENCES, FACTS._replace(model=""))
    for one, other in ((known, unknown), (unknown, known)):
        LayerFileEmbedder(str(one)).load_state_dict(LayerFileEmbedder(str(other)).state_dict())


@in_memory
def test_it_can_be_copied(in_memory: bool, path: Path) -> None:
    embedder = LayerFileEmbedder(str(path), in_memory=in_memory)
    numbers = numbers_of(SENTENCES, path)
    assert torch.equal(copy.deepcopy(embedder)(numbers), embedder(numbers))


def write_layers_of_the_news(path: Path) -> Path:
    """A file of the fixtures' news whose vectors tell the class, one number each, amid noise."""
    reader, draw = AgNewsReader(), numpy.random.default_rng(13)
    classes = ["Business", "Sci/Tech", "Sports", "World"]
    index: Dict[str, str] = {}
    with LayerFileWriter.open(path, FACTS) as writer:
        for name in ("NEWS_TRAIN", "NEWS_DEV"):
            for instance in reader.read(EXT_VARS[name]):
                words = [token.text for token in instance["text"]]
                vectors = draw.normal(size=(3, len(words), WIDTH))
                vectors[..., classes.index(instance["label"].label)] += 3.0
                writer.write(str(len(index)), vectors)
                index[" ".join(words)] = str(len(index))
        writer.write_index(index.items())
    return path


def classifier_params(file: Path, loader: Dict[str, Any], mix: Optional[str]) -> Params:
    """A classifier that does no more than average its embedded tokens."""
    embedder = {"type": "elmo_scratch_layer_file", "file": str(file)}
    return Params(
        {
            "dataset_reader": {
                "type": "ag_news",
                "token_indexers": {"elmo": {"type": "elmo_scratch_layer_file", "file": str(file)}},
            },
            "train_data_path": EXT_VARS["NEWS_TRAIN"],
            "validation_data_path": EXT_VARS["NEWS_DEV"],
            "model": {
                "type": "elmo_scratch_classifier",
                "text_field_embedder": {
                    "token_embedders": {
                        "elmo": {**embedder, "mix": {"type": mix}} if mix else embedder
                    }
                },
                "seq2vec_encoder": {"type": "boe", "embedding_dim": WIDTH, "averaged": True},
            },
            "data_loader": {"batch_size": 16, "shuffle": True, **loader},
            "trainer": {"num_epochs": 4, "optimizer": {"type": "adam", "lr": 0.1}},
        }
    )


def predictions_of(model: Model, reader: DatasetReader) -> List[Any]:
    instances = list(reader.read(EXT_VARS["NEWS_DEV"]))[:7]
    for instance in instances:
        reader.apply_token_indexers(instance)
    return [output["probabilities"] for output in model.eval().forward_on_instances(instances)]


@pytest.mark.parametrize("loader, mix", [({}, None), ({"num_workers": 2}, "function")])
def test_a_classifier_learns_from_a_file(
    loader: Dict[str, Any], mix: Optional[str], tmp_path: Path
) -> None:
    file = write_layers_of_the_news(tmp_path / "layers.hdf5")
    params = classifier_params(file, loader, mix)
    reader = DatasetReader.from_params(copy.deepcopy(params["dataset_reader"]))
    model = train(params, tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["best_validation_accuracy"] > 0.9
    predictions = predictions_of(model, reader)
    archive = load_archive(tmp_path / "run" / "model.tar.gz")
    assert predictions_of(archive.model, archive.dataset_reader) == predictions
    file.rename(tmp_path / "moved.hdf5")
    with pytest.raises(ConfigurationError, match="layers.hdf5: there is no such file of layers"):
        load_archive(tmp_path / "run" / "model.tar.gz")
    moved = str(tmp_path / "moved.hdf5")
    overrides = {
        "dataset_reader.token_indexers.elmo.file": moved,
        "model.text_field_embedder.token_embedders.elmo.file": moved,
    }
    archive = load_archive(tmp_path / "run" / "model.tar.gz", overrides=json.dumps(overrides))
    assert predictions_of(archive.model, archive.dataset_reader) == predictions


def test_workers_read_the_same_batches(tmp_path: Path) -> None:
    file = write_layers_of_the_news(tmp_path / "layers.hdf5")

    def batches(**settings: Any) -> List[List[int]]:
        reader = AgNewsReader(token_indexers={"elmo": LayerFileIndexer(str(file))})
        loader = MultiProcessDataLoader(
            reader, EXT_VARS["NEWS_DEV"], batch_size=4, quiet=True, **settings
        )
        loader.index_with(Vocabulary.empty().from_instances(loader.iter_instances()))
        rows = [row for batch in loader for row in batch["text"]["elmo"]["token_numbers"].tolist()]
        return sorted([number for number in row if number] for row in rows)

    expected = batches()
    assert len(expected) > 4
    assert batches(num_workers=2) == expected
    assert batches(num_workers=2, max_instances_in_memory=8) == expected
