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


def test_all_else_is_left_to_allennlp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_utils, "CACHE_DIRECTORY", tmp_path / "cache")
    with pytest.raises(FileNotFoundError, match="none.txt"):
        located(tmp_path / "none.txt")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.txt").touch()
    assert located("~/mine.txt") == tmp_path / "mine.txt"
