from pathlib import Path

import pytest
import requests
from allennlp.common import file_utils
from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.paths import local_file, resolve_path


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that can't be made, for lack of a folder to make it in."""
    (tmp_path / "home").touch()
    monkeypatch.setattr(file_utils, "CACHE_DIRECTORY", tmp_path / "home" / "cache")


@pytest.mark.parametrize("name", ["text.txt", "folder"])
def test_what_is_here_needs_no_cache(name: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").touch()
    (tmp_path / "folder").mkdir()
    assert resolve_path(tmp_path / name) == tmp_path / name
    assert resolve_path(str(tmp_path / name)) == tmp_path / name


def test_a_home_folder_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.txt").touch()
    assert resolve_path("~/mine.txt") == tmp_path / "mine.txt"


def test_what_is_not_here_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none.txt"):
        resolve_path(tmp_path / "none.txt")


def test_addresses_but_those_of_http_are_left_to_allennlp(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cached_path", "fetched"):
        monkeypatch.setattr(
            f"elmo_scratch.files.paths.{name}", lambda address, name=name: f"/{name}/{address[-5:]}"
        )
    assert resolve_path("s3://somewhere/a.txt") == Path("/cached_path/a.txt")
    assert resolve_path("https://somewhere/a.txt") == Path("/fetched/a.txt")


@pytest.mark.parametrize("error", [requests.ConnectionError, ValueError, OSError])
def test_an_address_that_cannot_be_reached_is_named(
    error: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> str:
        raise error("the line\n  is dead")

    monkeypatch.setattr("elmo_scratch.files.paths.cached_path", fail)
    with pytest.raises(ConfigurationError, match="^ftp://x/a: it can't be .*: the line is dead$"):
        resolve_path("ftp://x/a")


def test_an_address_of_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(address: str) -> str:
        raise FileNotFoundError(address)

    monkeypatch.setattr("elmo_scratch.files.paths.fetched", fail)
    with pytest.raises(FileNotFoundError):
        resolve_path("https://somewhere/none.txt")


def test_a_name_that_the_system_does_not_take_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be read \(File name too long\)"):
        resolve_path(tmp_path / ("x" * 300))


def test_a_file_that_may_not_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weights.hdf5").touch()
    monkeypatch.setattr("elmo_scratch.files.paths.os.access", lambda *_: False)
    with pytest.raises(ConfigurationError, match="weights.hdf5: cannot be read .permission denied"):
        local_file(tmp_path / "weights.hdf5")
