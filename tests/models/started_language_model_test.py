import json
import logging
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any, Dict, List

import pytest
import torch
from allennlp.commands.evaluate import evaluate_from_archive
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.models.archival import load_archive

from elmo_scratch.embedders import BiLmEmbedder
from elmo_scratch.interop import export_bilm, read_bilm, read_bilm_archive
from elmo_scratch.interop.archives.sidecar import archived_path
from elmo_scratch.models import pretrained
from elmo_scratch.modules.softmaxes import FullSoftmax
from tests.tiny_archives import WORD_BILM, archive_of, config_of
from tests.tiny_elmo import OfficialFiles
from tests.tiny_training import logging_as_before, train

DOMAIN = ["the bank failed", "a river flooded the bank", "rates rose", "the flood rose"]
FROM_OFFICIAL, FROM_ARCHIVE = "elmo_scratch_bilm_from_official", "elmo_scratch_bilm_from_archive"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a biLM of characters."""
    return archive_of(tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="module")
def word_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return archive_of(tmp_path_factory.mktemp("words"), bilm=WORD_BILM)


def vocab_of(*lines: str) -> Vocabulary:
    words = dict.fromkeys(word for line in lines for word in line.split())
    return Vocabulary(tokens_to_add={"tokens": list(words)})


def build(vocab: Vocabulary, **model: Any) -> Model:
    return Model.from_params(Params(deepcopy(model)), vocab=vocab)


def same_word_rows(name: str, one: Model, other: Model) -> List[str]:
    """The words of one model whose rows of a tensor are equal in the other."""
    ids = one.vocab.get_token_to_index_vocabulary("tokens")
    other_ids = other.vocab.get_token_to_index_vocabulary("tokens")
    rows, other_rows = one.get_parameter(name), other.get_parameter(name)
    return [
        word
        for word in ids
        if word in other_ids and torch.equal(rows[ids[word]], other_rows[other_ids[word]])
    ]


KNOWN = {"@@PADDING@@", "@@UNKNOWN@@", "<S>", "</S>", "the", "bank", "a", "river", "rates", "rose"}
"""What the first texts and those of the domain share."""


def test_it_starts_from_official_files(files: OfficialFiles) -> None:
    model = build(
        vocab_of(*DOMAIN),
        type=FROM_OFFICIAL,
        options_file=files.options,
        weight_file=files.weights,
        bilm={"dropout": 0.3, "state": "reset"},
        dropout=0.2,
        softmax={"type": "full"},
        num_confusion_words=3,
    )
    expected = files.ours().bilm.state_dict()
    state = model.bilm.state_dict()
    assert all(torch.equal(state[name], expected[name]) for name in expected)
    assert (model.bilm.left_to_right.dropout.p, model.dropout.p) == (0.3, 0.2)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_it_starts_from_an_archive(archive: Path) -> None:
    vocab = vocab_of(*DOMAIN)
    model = build(vocab, type=FROM_ARCHIVE, archive_file=str(archive), namespace="tokens")
    before = load_archive(archive).model
    state, expected = model.bilm.state_dict(), before.bilm.state_dict()
    assert all(torch.equal(state[name], expected[name]) for name in expected)
    assert set(same_word_rows("softmax.weight", model, before)) == KNOWN
    assert set(same_word_rows("softmax.bias", model, before)) >= KNOWN


@pytest.mark.parametrize("softmax", [{}, {"softmax": {"type": "sampled", "num_samples": 3}}])
def test_an_initializer_draws_anew_what_it_matches(softmax: Any, archive: Path) -> None:
    drawn = {"type": "constant", "val": 0.25}
    initializer = {"regexes": [["softmax.weight|left_to_right.*", drawn]]}
    settings: Dict[str, Any] = {"type": FROM_ARCHIVE, "archive_file": str(archive), **softmax}
    model = build(vocab_of(*DOMAIN), initializer=initializer, **settings)
    before = load_archive(archive).model
    assert (model.softmax.weight == 0.25).all()
    assert set(same_word_rows("softmax.bias", model, before)) >= KNOWN
    for name, weight in model.bilm.named_parameters():
        expected = torch.full_like(weight, 0.25)
        if not name.startswith("left_to_right"):
            expected = before.bilm.get_parameter(name)
        assert torch.equal(weight, expected), name


def test_a_namespace_without_words_is_an_error(archive: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"in the namespace 'words' .* are \['tokens'\]"):
        build(vocab_of(*DOMAIN), type=FROM_ARCHIVE, archive_file=str(archive), namespace="words")


def test_words_of_a_bilm_of_words_are_found_by_their_spelling(word_archive: Path) -> None:
    model = build(vocab_of(*DOMAIN), type=FROM_ARCHIVE, archive_file=str(word_archive))
    before = load_archive(word_archive).model
    name = "bilm.token_encoder.embedding.weight"
    assert set(same_word_rows(name, model, before)) == KNOWN
    assert len(model.get_parameter(name)) == model.vocab.get_vocab_size("tokens")


def test_an_exported_bilm_of_words_is_a_starting_point(word_archive: Path, tmp_path: Path) -> None:
    export_bilm(word_archive, tmp_path)
    model = build(
        vocab_of(*DOMAIN),
        type=FROM_OFFICIAL,
        options_file=str(tmp_path / "options.json"),
        weight_file=str(tmp_path / "weights.hdf5"),
        vocab_file=str(tmp_path / "vocab.txt"),
    )
    before = load_archive(word_archive).model
    assert set(same_word_rows("bilm.token_encoder.embedding.weight", model, before)) == KNOWN


def test_another_softmax_starts_at_random_and_says_so(
    archive: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings: Dict[str, Any] = {"type": FROM_ARCHIVE, "archive_file": str(archive)}
    with caplog.at_level(logging.WARNING, logger=pretrained.__name__):
        build(vocab_of(*DOMAIN), **settings)
        assert caplog.text == ""
        build(vocab_of(*DOMAIN), **settings, softmax={"type": "adaptive", "cutoffs": [4]})
    assert "the softmax starts at random" in caplog.text


def test_the_softmax_of_an_archive_goes_on_with_its_words(tmp_path: Path) -> None:
    adaptive = {"type": "adaptive", "cutoffs": [4]}
    source = archive_of(tmp_path / "before", softmax=adaptive)
    before = load_archive(source).model.softmax.state_dict()
    config = started_config(tmp_path, FROM_ARCHIVE, source)
    model = config["model"]
    vocab = Vocabulary.from_files(str(source))
    started = build(vocab, **model).softmax.state_dict()
    assert all(torch.equal(started[name], before[name]) for name in before)
    config["vocabulary"] = {"type": "from_files", "directory": str(source)}
    expected = train(Params(config), tmp_path / "run").softmax.state_dict()
    assert expected.keys() == before.keys()
    # Its archive knows the kind without the archive that it started from.
    shutil.rmtree(tmp_path / "before")
    remove_source(tmp_path)
    archive = tmp_path / "run" / "model.tar.gz"
    loaded = load_archive(archive).model.softmax.state_dict()
    assert all(torch.equal(loaded[name], expected[name]) for name in expected)
    softmax = read_bilm(archive, with_softmax=True).softmax
    assert softmax.config == adaptive and softmax.tensors.keys() == expected.keys()
    # With other words it starts anew, as a full one.
    other = build(vocab_of(*DOMAIN, "heron"), **{**model, "archive_file": str(archive)})
    assert isinstance(other.softmax, FullSoftmax)


def test_older_trainings_go_on_with_the_softmax_of_their_time(
    archive: Path, tmp_path: Path
) -> None:
    """These took a full softmax, whatever the archive had that they started from."""
    config = started_config(tmp_path, FROM_ARCHIVE, archive)
    train(Params(deepcopy(config)), tmp_path / "run")
    archived_path(tmp_path / "run", "-softmax").unlink()
    adaptive = {"type": "adaptive", "cutoffs": [4]}
    before = archive_of(tmp_path / "before", softmax=adaptive, lines=DOMAIN)
    shutil.copy(before, config["model"]["archive_file"])
    loaded = Model.from_params(
        Params(config["model"]),
        vocab=Vocabulary.from_files(str(tmp_path / "run" / "vocabulary")),
        serialization_dir=str(tmp_path / "run"),
    )
    assert isinstance(loaded.softmax, FullSoftmax)


@pytest.mark.parametrize(
    "settings, complaint",
    [
        ({"type": FROM_ARCHIVE, "archive_file": "none.tar.gz"}, "none.tar.gz: there is no such"),
        (
            {"type": FROM_OFFICIAL, "options_file": "none.json", "weight_file": "none.hdf5"},
            "none.*: there is no such file",
        ),
    ],
)
def test_a_starting_point_that_is_missing_is_an_error(
    settings: Dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    config = config_of(tmp_path, bilm=None)
    config["model"] = settings
    with pytest.raises(ConfigurationError, match=complaint):
        train(Params(config), tmp_path / "run")


@pytest.mark.parametrize(
    "settings, named",
    [
        ({"num_confusing_words": 3}, "num_confusing_words"),
        ({"bilm": {"cell_size": 7}}, "cell_size"),
        ({"softmax": {"type": "no_softmax"}}, "no_softmax"),
    ],
)
def test_an_unknown_setting_is_an_error_that_names_it(
    settings: Dict[str, Any], named: str, archive: Path
) -> None:
    with pytest.raises((ConfigurationError, TypeError), match=named):
        build(vocab_of(*DOMAIN), type=FROM_ARCHIVE, archive_file=str(archive), **settings)


def started_config(folder: Path, start: str, source: Path) -> Dict[str, Any]:
    """A training on the texts of the domain, from a copy of an archive or of what it exports."""
    model: Dict[str, Any] = {"type": start, "bilm": {"dropout": 0.3}}
    if start == FROM_ARCHIVE:
        model["archive_file"] = str(shutil.copy(source, folder / "source.tar.gz"))
    else:
        export_bilm(source, folder / "source", overwrite=True)
        model["options_file"] = str(folder / "source" / "options.json")
        model["weight_file"] = str(folder / "source" / "weights.hdf5")
        model["vocab_file"] = str(folder / "source" / "vocab.txt")
    config = config_of(folder, bilm=None, lines=DOMAIN)
    config["model"] = model
    return config


def remove_source(folder: Path) -> None:
    shutil.rmtree(folder / "source", ignore_errors=True)
    (folder / "source.tar.gz").unlink(missing_ok=True)


each_start = pytest.mark.parametrize("start", [FROM_OFFICIAL, FROM_ARCHIVE])
each_kind = pytest.mark.parametrize("kind", ["archive", "word_archive"])


@each_start
@each_kind
def test_its_archive_stands_alone(
    start: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    config = started_config(tmp_path, start, request.getfixturevalue(kind))
    expected = train(Params(deepcopy(config)), tmp_path / "run").state_dict()
    remove_source(tmp_path)
    shutil.move(tmp_path / "run" / "model.tar.gz", tmp_path / "moved.tar.gz")
    loaded = load_archive(tmp_path / "moved.tar.gz").model
    assert all(torch.equal(loaded.state_dict()[name], expected[name]) for name in expected)
    assert loaded.bilm.left_to_right.dropout.p == 0.3
    # The output folder too, and as a biLM for a task, for an export and for the next training.
    assert load_archive(tmp_path / "run").model.state_dict().keys() == expected.keys()
    shutil.rmtree(tmp_path / "run")
    bilm = read_bilm_archive(tmp_path / "moved.tar.gz").bilm
    for name, tensor in bilm.state_dict().items():
        assert torch.equal(tensor, expected[f"bilm.{name}"]), name
    export_bilm(tmp_path / "moved.tar.gz", tmp_path / "official")
    again = build(vocab_of(*DOMAIN), type=FROM_ARCHIVE, archive_file=str(tmp_path / "moved.tar.gz"))
    assert set(same_word_rows("softmax.weight", again, loaded)) > {"failed", "flooded"}


def test_it_was_trained_on(archive: Path, tmp_path: Path) -> None:
    config = started_config(tmp_path, FROM_ARCHIVE, archive)
    model = train(Params(config), tmp_path / "run")
    before = load_archive(archive).model
    for name, parameter in before.bilm.named_parameters():
        assert not torch.equal(model.bilm.get_parameter(name), parameter), name


@pytest.fixture(scope="module")
def sparse_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a biLM of words that an optimizer for sparse gradients has trained."""
    folder = tmp_path_factory.mktemp("sparse")
    bilm = {**WORD_BILM, "token_encoder": {**WORD_BILM["token_encoder"], "sparse": True}}
    config = config_of(folder, bilm=bilm)
    config["trainer"]["optimizer"]["type"] = "adagrad"
    train(Params(config), folder / "run")
    return folder / "run" / "model.tar.gz"


@each_start
def test_any_optimizer_trains_on_what_was_trained_with_sparse_gradients(
    start: str, sparse_archive: Path, tmp_path: Path
) -> None:
    config = started_config(tmp_path, start, sparse_archive)
    assert config["trainer"]["optimizer"]["type"] == "adam"
    model = train(Params(config), tmp_path / "run")
    name = "bilm.token_encoder.embedding.weight"
    assert len(same_word_rows(name, model, load_archive(sparse_archive).model)) < len(KNOWN)


def test_an_embedder_trains_a_bilm_on_with_dense_gradients(sparse_archive: Path) -> None:
    vocab = vocab_of(*DOMAIN)
    embedder = BiLmEmbedder(vocab, pretrained_file=str(sparse_archive), requires_grad=True)
    embedder(torch.tensor([[2, 3, 4]])).pow(2).sum().backward()
    gradients = [weight.grad for weight in embedder.bilm.parameters()]
    assert all(gradient is not None and not gradient.is_sparse for gradient in gradients)


def test_it_predicts_the_texts_of_the_domain_better_than_before(
    archive: Path, tmp_path: Path
) -> None:
    config = started_config(tmp_path, FROM_ARCHIVE, archive)
    config["trainer"]["num_epochs"] = 5
    text = config["train_data_path"]
    train(Params(config), tmp_path / "run")
    before, after = (
        evaluate_from_archive(str(one), text)["perplexity"]
        for one in (archive, tmp_path / "run" / "model.tar.gz")
    )
    assert after < 0.8 * before


def test_a_training_is_recovered_where_its_starting_point_is_no_more(
    archive: Path, tmp_path: Path
) -> None:
    config = started_config(tmp_path, FROM_ARCHIVE, archive)
    train(Params(deepcopy(config)), tmp_path / "run")
    remove_source(tmp_path)
    config["trainer"]["num_epochs"] = 2
    config["model"]["bilm"]["dropout"] = 0.2
    config_file = tmp_path / "run" / "config.json"
    config_file.write_text(json.dumps({**json.loads(config_file.read_text()), **config}))
    with logging_as_before():
        model = train_model(Params(config), str(tmp_path / "run"), recover=True)
    assert model is not None
    assert not any(parameter.isnan().any() for parameter in model.parameters())
    assert model.bilm.left_to_right.dropout.p == 0.2
    again = read_bilm_archive(tmp_path / "run" / "model.tar.gz").bilm
    assert again.left_to_right.dropout.p == 0.2
