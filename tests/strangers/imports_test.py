"""A config that came in an archive has nothing imported, run or fetched."""

import sys
from pathlib import Path
from typing import Any

import pytest
from allennlp.commands import main
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models import Model
from allennlp.models.archival import load_archive
from allennlp.modules import TokenEmbedder

from elmo_scratch import SentenceScorer
from elmo_scratch.interop import read_bilm, read_bilm_archive
from elmo_scratch.interop.archives.archive import UntrustedReader
from elmo_scratch_compat.strangers import (
    config_as_data,
    is_config_of_others,
    may_name,
    names_of,
    trusted,
)
from tests.strangers.hostile_archives import WORDS, Change, hostile, with_config, with_weights

PROGRAM = """
import pathlib
from elmo_scratch.data import SentencesReader
pathlib.Path(__file__).with_suffix(".ran").touch()

class Reader(SentencesReader):
    pass
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed module that leaves a file when it is imported."""
    path = tmp_path / "somebodys_program.py"
    path.write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, path.stem, raising=False)
    return path


def has_run(program: Path) -> bool:
    return program.with_suffix(".ran").exists()


NAMING = [
    with_config(dataset_reader={"type": "somebodys_program.Reader"}),
    with_config(dataset_reader__tokenizer="somebodys_program.Reader"),
    with_config(dataset_reader__token_indexers__tokens__type="somebodys_program.Reader"),
    with_config(vocabulary={"type": "somebodys_program.Reader"}),
    with_config(model__bilm__token_encoder__type="somebodys_program.Reader"),
]
"""Archives whose configs name the program, each in another place."""


@pytest.mark.parametrize("read", [read_bilm, read_bilm_archive, load_archive])
@pytest.mark.parametrize("change", NAMING)
def test_nothing_is_imported_because_an_archive_names_it(
    read: Any, change: Change, program: Path, tmp_path: Path
) -> None:
    archive = hostile(tmp_path / "x", change)
    for source in (archive, archive.with_name("model")):
        with pytest.raises(ConfigurationError, match=f"{source}: .*nothing is imported because"):
            read(source)
    assert not has_run(program)


def embedder_of(source: Path) -> TokenEmbedder:
    """As in a config of one's own that starts from somebody's archive."""
    config = {"type": "elmo_scratch", "pretrained_file": str(source)}
    return TokenEmbedder.from_params(Params(config), vocab=Vocabulary())


def model_of(source: Path) -> Model:
    config = {"type": "elmo_scratch_bilm_from_archive", "archive_file": str(source)}
    return Model.from_params(Params(config), vocab=Vocabulary.from_files(str(WORDS)))


@pytest.mark.parametrize("build", [embedder_of, model_of])
@pytest.mark.parametrize("change", NAMING)
def test_a_config_of_ones_own_imports_nothing_that_its_archive_names(
    build: Any, change: Change, program: Path, tmp_path: Path
) -> None:
    archive = hostile(tmp_path / "x", change)
    for source in (archive, archive.with_name("model")):
        with pytest.raises(ConfigurationError, match=f"{source}: .*nothing is imported because"):
            build(source)
    assert not has_run(program)


def test_a_model_that_starts_from_an_archive_imports_no_softmax_either(
    program: Path, tmp_path: Path
) -> None:
    def change(folder: Path) -> None:
        with_config(model__softmax={"type": "somebodys_program.Reader"})(folder)
        # A softmax with a row for each word would be replaced by one of our own.
        with_weights(lambda tensors: tensors.update(rows=tensors.pop("softmax.weight")))(folder)

    with pytest.raises(ConfigurationError, match="nothing is imported because"):
        model_of(hostile(tmp_path / "x", change))
    assert not has_run(program)


@pytest.mark.parametrize("read", [read_bilm, load_archive, embedder_of, model_of])
def test_a_module_that_ends_the_process_is_not_imported(
    read: Any, program: Path, tmp_path: Path
) -> None:
    program.write_text(f"{PROGRAM}\nraise SystemExit(0)\n")
    with pytest.raises(ConfigurationError, match="nothing is imported because"):
        read(hostile(tmp_path / "x", NAMING[0]))
    assert not has_run(program)


@pytest.mark.parametrize("place", ["model__softmax", "validation_dataset_reader"])
def test_scoring_imports_nothing_either(place: str, program: Path, tmp_path: Path) -> None:
    archive = hostile(tmp_path / "x", with_config(**{place: {"type": "somebodys_program.Reader"}}))
    with pytest.raises(ConfigurationError, match="nothing is imported because"):
        SentenceScorer.from_pretrained(archive)
    assert not has_run(program)


def test_an_evaluation_builds_no_loader_of_an_unknown_module(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path
) -> None:
    change = with_config(data_loader={"type": "somebodys_program.Reader"})
    archive = hostile(tmp_path / "x", change)
    monkeypatch.setattr("sys.argv", ["allennlp", "evaluate", str(archive), str(text)])
    with pytest.raises(SystemExit, match="nothing is imported because an archive names it"):
        main("allennlp")
    assert not has_run(program)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("the river rose\n")
    return path


def test_what_a_user_has_imported_may_be_named(program: Path, tmp_path: Path) -> None:
    """As `--include-package` does."""
    reader = __import__(program.stem).Reader
    archive = hostile(tmp_path / "x", with_config(dataset_reader__type="somebodys_program.Reader"))
    assert type(read_bilm_archive(archive).reader) is reader
    assert type(load_archive(archive).dataset_reader) is reader


def test_what_a_user_types_as_an_override_may_be_named(program: Path, tmp_path: Path) -> None:
    archive = hostile(tmp_path / "x", with_config(dataset_reader__type="nobodys.Reader"))
    overrides = '{"dataset_reader.type": "somebodys_program.Reader"}'
    assert type(load_archive(archive, overrides=overrides).dataset_reader).__name__ == "Reader"
    assert has_run(program)


def test_names_in_overrides_are_found_at_any_depth() -> None:
    assert set(names_of('{"a.b": "c.D", "e": [{"f": "g.H"}]}')) == {"c.D", "g.H"}
    assert names_of({"a": {"b": "c.D"}}) == ["c.D"]
    assert names_of("{a: { b: 'c.' + 'D' }}") == ["c.D"]
    assert names_of("") == names_of("{") == names_of("{a: std.extVar('none')}") == []


@pytest.mark.parametrize(
    "path, is_allowed",
    [
        ("allennlp.nn.Activation", True),
        ("torch.optim.Adam", True),
        ("elmo_scratch.embedders.Elmo", True),
        ("allennlp_models.__main__.x", False),
        ("torch.utils.bottleneck.__main__.x", False),
        ("torchvision.models.ResNet", False),
        ("venv.__main__.x", False),
        ("json.Whatever", False),  # loaded, but it has no such name
        ("json.JSONDecoder", True),
        ("..x", False),
    ],
)
def test_what_the_config_of_an_archive_may_name(path: str, is_allowed: bool) -> None:
    with config_as_data():
        assert may_name(path) is is_allowed
    assert may_name(path)  # in a config of one's own


def test_a_config_is_only_that_of_others_within_its_archive() -> None:
    assert not is_config_of_others()
    with config_as_data():
        assert is_config_of_others()
    with trusted(), config_as_data():
        assert not is_config_of_others()
        assert may_name("venv.__main__.x")
    with trusted(False), config_as_data():
        assert is_config_of_others()


FETCHING = [
    {"tokenizer": {"type": "pretrained_transformer", "model_name": "x/y"}},
    {"token_indexers": {"tokens": {"type": "pretrained_transformer", "model_name": "x/y"}}},
    {"token_indexers": {"t": {"type": "pretrained_transformer_mismatched", "model_name": "x/y"}}},
]


@pytest.fixture
def no_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that must not be asked."""

    def fetch(*_: Any, **__: Any) -> None:
        raise AssertionError("a model would be fetched")

    monkeypatch.setattr("allennlp.common.cached_transformers.get_tokenizer", fetch)
    monkeypatch.setattr("allennlp.common.cached_transformers.get", fetch)


@pytest.mark.parametrize("settings", FETCHING)
def test_a_reader_that_would_fetch_models_is_not_built(
    settings: Any, no_transformers: None, tmp_path: Path
) -> None:
    changes = {f"dataset_reader__{name}": value for name, value in settings.items()}
    archive = hostile(tmp_path / "x", with_config(**changes))
    with pytest.raises(UntrustedReader, match="has a PretrainedTransformer.* give `--trust`"):
        read_bilm(archive)
    with trusted(), pytest.raises(ConfigurationError, match="a model would be fetched"):
        read_bilm(archive)


@pytest.mark.parametrize("language", ["xx_unknown", "pip", "/tmp", "allennlp.x"])
def test_a_model_of_spacy_is_neither_fetched_nor_any_package_imported(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(*names: str) -> None:
        raise AssertionError(f"{names} would be downloaded")

    monkeypatch.setattr("allennlp.common.util.spacy_download", download)
    tokenizer = {"type": "spacy", "language": language}
    archive = hostile(tmp_path / "x", with_config(dataset_reader__tokenizer=tokenizer))
    for read in (read_bilm, load_archive):
        with pytest.raises(ConfigurationError, match=f"spaCy's model '{language}' is needed"):
            read(archive)


def test_commands_take_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--trust` builds the reader, which fails for another reason than that it might fetch."""
    archive = hostile(
        tmp_path / "x",
        with_config(dataset_reader__tokenizer={"type": "pretrained_transformer"}),
    )
    words = ["allennlp", "elmo-export", str(archive), str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit, match="which might fetch files or run programs"):
        main("allennlp")
    monkeypatch.setattr("sys.argv", [*words, "--trust"])
    with pytest.raises(SystemExit, match="model_name"):
        main("allennlp")


def test_a_registered_reader_of_ones_own_is_built(tmp_path: Path) -> None:
    from elmo_scratch.data import SentencesReader

    @DatasetReader.register("somebodys_own", exist_ok=True)
    class OwnReader(SentencesReader):
        pass

    archive = hostile(tmp_path / "x", with_config(dataset_reader__type="somebodys_own"))
    assert type(read_bilm_archive(archive).reader) is OwnReader
