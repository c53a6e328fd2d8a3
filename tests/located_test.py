from pathlib import Path

import pytest
from allennlp.common import file_utils

from elmo_scratch.located import located


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that can't be made, for lack of a folder to make it in."""
    (tmp_path / "home").touch()
    monkeypatch.setattr(file_utils, "CACHE_DIRECTORY", tmp_path / "home" / "cache")


@pytest.mark.parametrize("name", ["text.txt", "folder"])
def test_what_is_here_needs_no_cache(name: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").touch()
    (tmp_path / "folder").mkdir()
    assert located(tmp_path / name) == tmp_path / name
    assert located(str(tmp_path / name)) == tmp_path / name


def test_a_home_folder_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.txt").touch()
    assert located("~/mine.txt") == tmp_path / "mine.txt"


def test_what_is_not_here_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none.txt"):
        located(tmp_path / "none.txt")


def test_addresses_are_left_to_allennlp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_scratch.located.cached_path", lambda address: f"/kept/{address[-5:]}")
    assert located("https://somewhere/a.txt") == Path("/kept/a.txt")
