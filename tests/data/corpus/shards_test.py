import errno
import os
from pathlib import Path
from typing import Any

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.corpus import list_shards
from elmo_scratch.data.corpus import shards as module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three shards, one of them in a folder, and something else."""
    (tmp_path / "more").mkdir()
    for name in ("b.txt", "a.txt", "more/c.txt", "notes.md"):
        (tmp_path / name).write_text("a line\n")
    return tmp_path


def test_a_file_is_a_corpus(folder: Path) -> None:
    assert list_shards(str(folder / "b.txt")) == [folder / "b.txt"]
    assert list_shards(folder / "b.txt") == [folder / "b.txt"]


def test_the_files_of_a_pattern_are_sorted(folder: Path) -> None:
    assert list_shards(str(folder / "*.txt")) == [folder / "a.txt", folder / "b.txt"]


def test_two_stars_stand_for_folders_within_folders(folder: Path) -> None:
    names = [path.name for path in list_shards(str(folder / "**" / "*.txt"))]
    assert names == ["a.txt", "b.txt", "c.txt"]


def test_a_list_keeps_its_order_and_names_no_file_twice(folder: Path) -> None:
    os.symlink(folder / "a.txt", folder / "z.txt")
    shards = list_shards([folder / "b.txt", str(folder / "*.txt"), str(folder / "more/*")])
    assert shards == [folder / "b.txt", folder / "a.txt", folder / "more" / "c.txt"]


def test_folders_that_a_pattern_matches_are_passed_over(folder: Path) -> None:
    assert [path.name for path in list_shards(str(folder / "*"))] == ["a.txt", "b.txt", "notes.md"]


def test_a_name_with_the_signs_of_a_pattern_is_a_name(folder: Path) -> None:
    path = folder / "part[1].txt"
    path.touch()
    assert list_shards(str(path)) == [path]


def test_an_address_is_fetched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_scratch.files.paths.fetched", lambda address: str(folder / "a.txt"))
    assert list_shards("https://example.com/a.txt") == [folder / "a.txt"]


def test_an_address_that_leads_nowhere_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigurationError, match="nowhere://a.txt: it can't be fetched"):
        list_shards("nowhere://a.txt")


def test_a_home_folder_is_known(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert list_shards("~/*.md") == [folder / "notes.md"]


def test_a_pattern_that_matches_nothing_is_an_error_that_tells_what_there_is(folder: Path) -> None:
    with pytest.raises(ConfigurationError) as error:
        list_shards(str(folder / "*.gz"))
    assert str(error.value) == (
        f"{folder / '*.gz'}: no file matches. The folder {folder} holds a.txt, b.txt, more and 1 "
        "more."
    )


def test_of_a_folder_that_is_missing_the_one_above_is_named(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"{folder}/no/no.txt: no file.*folder {folder} "):
        list_shards(str(folder / "no" / "no.txt"))


def test_an_empty_folder_is_called_empty(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="The folder .* is empty"):
        list_shards(str(tmp_path / "*.txt"))


def test_a_folder_is_an_error_that_tells_how_to_name_its_files(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"more: expected text files.*more/\*\.txt"):
        list_shards(str(folder / "more"))


def test_a_pipe_is_an_error(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(ConfigurationError, match="pipe: expected a file that can be read more"):
        list_shards(str(folder / "pipe"))


@pytest.mark.parametrize("name", ["pipe.txt", "link.txt"])
def test_what_is_no_file_is_not_passed_over_where_a_pattern_matches_it(
    name: str, folder: Path
) -> None:
    if name == "pipe.txt":
        os.mkfifo(folder / name)
    else:
        os.symlink("nowhere", folder / name)
    with pytest.raises(ConfigurationError, match=f"{name}: expected a file, as .*a link that lead"):
        list_shards(str(folder / "*.txt"))


@pytest.mark.parametrize("pattern", ["*/*.txt", "**/*.txt", "**"])
def test_a_folder_that_cannot_be_listed_is_not_passed_over(
    pattern: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever runs the tests may be allowed to read everything.
    listed = os.scandir

    def refused(path: Any) -> Any:
        if Path(path) == folder / "more":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(
        ConfigurationError, match=r"more/: it can't be told which files .* \(Permission denied\)"
    ):
        list_shards(str(folder / pattern))
    assert len(list_shards(str(folder / "*.txt"))) == 2


def test_a_name_that_the_system_does_not_take_is_an_error(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be read \(File name too long\)"):
        list_shards(str(folder / ("x" * 300)))


def test_an_empty_list_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="the list is empty"):
        list_shards([])


def test_messages_name_the_first_three() -> None:
    shards = [Path(f"{number}.txt") for number in range(4)]
    assert module.first_names(shards[:3]) == "0.txt, 1.txt, 2.txt"
    assert module.first_names(shards) == "0.txt, 1.txt, 2.txt, …"
