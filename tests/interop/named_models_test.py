import hashlib
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Iterator
from urllib.parse import urlparse

import numpy
import pytest
import requests
from allennlp.common import file_utils
from allennlp.common.checks import ConfigurationError
from cached_path.util import resource_to_filename

from elmo_scratch import Elmo, ElmoEmbedder
from elmo_scratch.files import paths as download
from elmo_scratch.interop import named_models
from elmo_scratch.interop.named_models import (
    BUCKETS,
    NAMED_MODELS,
    NAMED_SOFTMAXES,
    NamedModel,
    NamedSoftmax,
    PublishedFile,
    named_files,
    named_softmax,
    official_file,
    resolve_model,
)
from elmo_scratch.interop.official import RELEASED_OPTIONS, RELEASED_WEIGHTS
from tests import FIXTURES_ROOT
from tests.local_server import LocalServer, local_server

RESIDUAL = FIXTURES_ROOT / "elmo" / "residual"
OPTIONS, WEIGHTS = (RESIDUAL / name for name in ("options.json", "weights.hdf5"))
TRAINED = FIXTURES_ROOT / "elmo" / "language_model"
"""A tiny model with its softmax."""

UNKNOWN = "medium"
"""A model of whose files neither size nor checksum is known."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of named models, AllenNLP's being empty."""
    monkeypatch.setattr(file_utils, "CACHE_DIRECTORY", str(tmp_path / "allennlp"))
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ELMO_SCRATCH_MODELS", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache" / "models"


@pytest.fixture
def server(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """Serves, in the place of AllenNLP's, a published model with the files of a tiny one."""
    with local_server() as server:
        for file, path in zip(NAMED_MODELS[UNKNOWN], (OPTIONS, WEIGHTS)):
            server.files[f"/models/elmo/{file.path}"] = path.read_bytes()
        buckets = (f"{server.address}/models/elmo/", BUCKETS[1])
        monkeypatch.setattr(named_models, "BUCKETS", buckets)
        yield server


@pytest.fixture
def offline(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request is a mistake of the test, or finds no connection."""
    monkeypatch.setattr(named_models, "BUCKETS", ("http://127.0.0.1:9/elmo/", BUCKETS[1]))


def in_folder(folder: Path, name: str, weights_name: str = "weights.hdf5") -> Path:
    """Puts a tiny model into a folder for named models."""
    (folder / name).mkdir(parents=True)
    shutil.copyfile(OPTIONS, folder / name / "options.json")
    shutil.copyfile(WEIGHTS, folder / name / weights_name)
    return folder / name


def test_the_published_addresses_are_those_of_allennlp() -> None:
    assert list(NAMED_MODELS) == ["small", "medium", "original", "original-5.5B", "pt", "pubmed"]
    assert RELEASED_OPTIONS == BUCKETS[0] + NAMED_MODELS["original"].options.path
    assert RELEASED_WEIGHTS.endswith("/elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5")
    paths = [file.path for model in NAMED_MODELS.values() for file in model]
    assert all(path.endswith(end) for path, end in zip(paths, ["options.json", ".hdf5"] * 6))
    softmaxes = [file.path for softmax in NAMED_SOFTMAXES.values() for file in softmax]
    assert all(path.endswith(end) for path, end in zip(softmaxes, ["_weights.hdf5", ".txt"] * 2))
    assert len({*paths, *softmaxes}) == 16
    assert {urlparse(bucket).scheme for bucket in BUCKETS} == {"https"}


def test_a_model_is_fetched_once(server: LocalServer, cache: Path) -> None:
    folder = Path(resolve_model(UNKNOWN))
    assert folder == cache / UNKNOWN
    assert (folder / "options.json").read_bytes() == OPTIONS.read_bytes()
    assert (folder / "weights.hdf5").read_bytes() == WEIGHTS.read_bytes()
    assert len(server.requests) == 2
    server.status = 503
    assert resolve_model(UNKNOWN) == str(folder)
    assert len(server.requests) == 2


def test_what_is_not_the_published_file_is_refused(server: LocalServer, tmp_path: Path) -> None:
    options = NAMED_MODELS[UNKNOWN].options
    # A network that wants a password answers with a page of its own.
    server.files[f"/models/elmo/{options.path}"] = b"<html>Welcome!</html>"
    with pytest.raises(ConfigurationError, match="medium can't be had: .*what came: expec"):
        resolve_model(UNKNOWN)
    server.files[f"/models/elmo/{options.path}"] = OPTIONS.read_bytes()
    weights = NAMED_MODELS[UNKNOWN].weights
    server.files[f"/models/elmo/{weights.path}"] = b"<html>Welcome!</html>"
    with pytest.raises(ConfigurationError, match="what came is no HDF5 file"):
        resolve_model(UNKNOWN)
    size = WEIGHTS.stat().st_size
    assert f"but the published file has {size + 1}" in PublishedFile("a", size + 1).flaw_of(WEIGHTS)


@pytest.mark.parametrize("is_same", [True, False])
def test_a_known_checksum_is_compared(
    is_same: bool, server: LocalServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = WEIGHTS.read_bytes()
    options, weights = NAMED_MODELS[UNKNOWN]
    known = PublishedFile(weights.path, len(content), hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(NAMED_MODELS, UNKNOWN, NamedModel(options, known))
    if is_same:
        assert resolve_model(UNKNOWN) == str(cache / UNKNOWN)
        return
    server.files[f"/models/elmo/{weights.path}"] = content[:-1] + b"."
    with pytest.raises(ConfigurationError, match="its SHA-256 is not that of the published file"):
        resolve_model(UNKNOWN)
    assert [path.name for path in (cache / UNKNOWN).glob("[!.]*")] == ["options.json"]
    assert not list((cache / UNKNOWN).glob("*.incomplete*"))


def test_without_a_connection_a_sentence_says_what_to_do(
    offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A refused connection isn't waited for.
    waits = SimpleNamespace(sleep=lambda seconds: pytest.fail("tried again"))
    monkeypatch.setattr(download, "time", waits)
    with pytest.raises(ConfigurationError) as error:
        resolve_model("small")
    assert error.value.message == (
        "the model small can't be had: http://127.0.0.1:9/elmo/2x1024_128_2048cnn_1xhighway/"
        "elmo_2x1024_128_2048cnn_1xhighway_options.json: it can't be fetched: Connection refused. "
        "Without a connection, put small/options.json and small/weights.hdf5 into a folder, and "
        "name the folder by the environment variable ELMO_SCRATCH_MODELS"
    )


def test_a_folder_of_models_needs_no_connection(
    offline: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    small = in_folder(second, "small", "model.hdf5")
    (first / "small").mkdir(parents=True)
    monkeypatch.setenv("ELMO_SCRATCH_MODELS", f"{first}:{second}")
    assert resolve_model("small") == str(small)
    assert named_files("small").weights == small / "model.hdf5"
    with pytest.raises(ConfigurationError, match=f"{second}/pt: there are no options.json"):
        resolve_model("pt")


def test_a_mirror_is_asked_before_the_published_address(
    server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/mirror/pt/options.json"] = OPTIONS.read_bytes()
    server.files["/mirror/pt/weights.hdf5"] = WEIGHTS.read_bytes()
    monkeypatch.setenv("ELMO_SCRATCH_MODELS", f"{server.address}/mirror/:{tmp_path}/none")
    resolve_model("pt")
    assert server.asked("GET") == ["/mirror/pt/options.json", "/mirror/pt/weights.hdf5"]
    # A mirror that lacks a model is passed over.
    resolve_model(UNKNOWN)
    assert server.asked("GET")[2] == f"/mirror/{UNKNOWN}/options.json"


@pytest.mark.parametrize(
    "value, places",
    [
        ("", []),
        ("/a", ["/a"]),
        ("/a:b/c", ["/a", "b/c"]),
        ("https://x.org", ["https://x.org"]),
        ("/a:http://x.org:8080/m:~/b:https://y.org/n/", None),
    ],
)
def test_places_are_parted_by_colons(
    value: str, places: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_MODELS", value)
    if places is None:
        places = ["/a", "http://x.org:8080/m", "~/b", "https://y.org/n/"]
    assert named_models._places() == [*places, BUCKETS[0]]


def test_what_allennlp_has_fetched_is_not_fetched_again(offline: None, cache: Path) -> None:
    kept = Path(file_utils.CACHE_DIRECTORY)
    kept.mkdir()
    # By both addresses of the bucket.
    files = NAMED_MODELS[UNKNOWN]
    for bucket, file, path in zip(named_models.BUCKETS, files, (OPTIONS, WEIGHTS)):
        shutil.copyfile(path, kept / resource_to_filename(bucket + file.path, '"etag"'))
    assert resolve_model(UNKNOWN) == str(cache / UNKNOWN)
    # A damaged copy is left where it is.
    shutil.rmtree(cache)
    (kept / resource_to_filename(BUCKETS[1] + files.weights.path, '"etag"')).write_bytes(b"no")
    with pytest.raises(ConfigurationError, match="Connection refused"):
        resolve_model(UNKNOWN)


def test_a_path_that_is_there_is_never_a_name(
    offline: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small").mkdir()
    assert resolve_model("small") == "small"
    Path("medium").touch()
    assert resolve_model("medium") == "medium"


@pytest.mark.parametrize(
    "name",
    ["runs/model.tar.gz", "http://x.org/weights.hdf5", "somebody/small", "none.zip", "large"],
)
def test_all_else_comes_back_as_it_is(name: str, offline: None) -> None:
    assert resolve_model(name) == name


def test_a_name_that_is_nearly_right_is_told(offline: None) -> None:
    with pytest.raises(ConfigurationError, match="orginal: there is no such .* mean original?"):
        resolve_model("orginal")


def test_published_addresses_mean_the_named_model(
    offline: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = in_folder(tmp_path / "models", "original")
    monkeypatch.setenv("ELMO_SCRATCH_MODELS", str(tmp_path / "models"))
    assert official_file(RELEASED_WEIGHTS) == original / "weights.hdf5"
    of_2018 = BUCKETS[1] + NAMED_MODELS["original"].options.path
    assert official_file(of_2018) == original / "options.json"
    assert official_file(WEIGHTS) == WEIGHTS
    assert Elmo(of_2018, RELEASED_WEIGHTS, 1).get_output_dim() == 12
    by_default, by_name = ElmoEmbedder(), ElmoEmbedder(weight_file="original")
    vectors = by_default.embed_sentence(["The", "bank"])
    assert numpy.array_equal(vectors, by_name.embed_sentence(["The", "bank"]))


def test_no_name_and_no_address_is_no_request(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a request that nobody asked for")

    monkeypatch.setattr(requests.Session, "request", fail)
    ElmoEmbedder(OPTIONS, WEIGHTS)
    assert resolve_model(str(RESIDUAL)) == str(RESIDUAL)
    assert ElmoEmbedder(weight_file=RESIDUAL).embed_sentence(["The"]).shape == (3, 1, 12)


def test_a_softmax_is_fetched_with_the_words_that_it_scores(
    server: LocalServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (TRAINED / "softmax_weights.hdf5").read_bytes()
    softmax, words = NAMED_SOFTMAXES["original"]
    known = NamedSoftmax(PublishedFile(softmax.path, len(content)), words)
    monkeypatch.setitem(NAMED_SOFTMAXES, "original", known)
    server.files[f"/models/elmo/{softmax.path}"] = content[:-1]
    with pytest.raises(ConfigurationError, match=f"but {len(content)} were expected"):
        named_softmax("original")
    server.files[f"/models/elmo/{softmax.path}"] = content
    server.files[f"/models/elmo/{words.path}"] = b"<html>Welcome!</html>"
    with pytest.raises(ConfigurationError) as error:
        named_softmax("original")
    assert error.value.message.startswith(
        f"the softmax of the model original can't be had: {server.address}/models/elmo/{words.path}"
    )
    assert "what came is no list of words with <S>, </S>, <UNK>, one a line" in error.value.message
    server.files[f"/models/elmo/{words.path}"] = (TRAINED / "vocab.txt").read_bytes()
    files = named_softmax("original")
    assert files == (cache / "original" / "softmax_weights.hdf5", cache / "original" / "vocab.txt")
    server.status = 503
    assert named_softmax("original") == files


def test_a_folder_of_models_may_hold_softmaxes(
    offline: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_MODELS", f"{tmp_path}/none:{tmp_path}")
    assert named_softmax("small") is None
    for name in ("small", "original"):
        folder = in_folder(tmp_path, name, "anything.hdf5")
        for file_name in ("softmax_weights.hdf5", "vocab.txt"):
            shutil.copyfile(TRAINED / file_name, folder / file_name)
        assert named_softmax(name) == (folder / "softmax_weights.hdf5", folder / "vocab.txt")
        assert named_files(name).weights == folder / "anything.hdf5"
