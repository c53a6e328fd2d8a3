import errno
import os
import signal
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.corpus.prepared_corpus import CHECKSUMS, MANIFEST, PART, make_once
from elmo_scratch.files.atomic import atomic_write, atomic_writes, check_folder, check_place
from elmo_scratch_compat.whole_files import sync, written_beside
from tests.forked import run_forked


def test_a_place_for_a_file_is_one_where_there_is_none_or_another(tmp_path: Path) -> None:
    check_place(tmp_path / "new.txt")
    (tmp_path / "old.txt").touch()
    check_place(tmp_path / "old.txt")


@pytest.mark.parametrize(
    "name, message",
    [
        ("", "expected a file to write to, but it is a folder"),
        ("no/x", "/no doesn't exist"),
        (300 * "x", r"xx: can't be written to \(File name too long\)"),
    ],
)
def test_no_place_for_a_file_is_an_error(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_place(tmp_path / name)


def test_what_is_not_there_cannot_be_waited_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content", encoding="utf-8")
    sync(tmp_path / "file")
    sync(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync(tmp_path / "other")


@pytest.mark.parametrize("path", ["fifo", "to_fifo", "circle", "/dev/null"])
def test_a_place_of_what_is_no_regular_file_is_an_error(path: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "to_fifo").symlink_to("fifo")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(ConfigurationError, match=f"{path}: .* but it is no regular file"):
        check_place(tmp_path / path)


def test_a_link_into_no_folder_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("none/out.txt")
    with pytest.raises(ConfigurationError, match="link: the folder .*/none doesn't exist"):
        check_place(tmp_path / "link")


@pytest.mark.parametrize("is_there", [False, True])
def test_a_link_stays_and_what_it_leads_to_is_written(is_there: bool, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "out.txt", tmp_path / "link"
    if is_there:
        target.write_text("old")
    link.symlink_to(target)
    check_place(link)
    with atomic_write(link) as temporary:
        temporary.write_text("new")
        assert temporary.parent.parent == target.parent
    assert link.is_symlink() and target.read_text() == "new"
    assert os.listdir(target.parent) == ["out.txt"]


def test_what_the_block_wrote_appears_under_the_name(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with atomic_write(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_an_older_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with atomic_write(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_after_an_error_the_old_file_is_there_and_no_temporary(error: type, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(error):
        with atomic_write(path) as temporary:
            temporary.write_text("half")
            raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_after_an_error_no_file_appears_where_none_was(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        with atomic_write(tmp_path / "out.txt") as temporary:
            temporary.write_text(str(1 / 0))
    assert os.listdir(tmp_path) == []


def test_a_killed_process_leaves_no_file_under_the_name(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path / "out.txt"

    def write_half() -> None:
        with atomic_write(path) as temporary:
            temporary.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)

    killed = run_forked(write_half, tmp_path_factory.mktemp("log") / "errors")
    assert killed.status == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name != path.name and (left / path.name).read_text() == "half"


def test_two_processes_do_not_share_a_temporary(tmp_path: Path) -> None:
    # In containers two of them may even have the same number.
    path = tmp_path / "out.txt"
    with atomic_write(path) as ours:
        with atomic_write(path) as theirs:
            assert ours != theirs
            theirs.write_text("theirs")
        ours.write_text("ours")
    assert path.read_text() == "ours"


NAMES = ("first", "second", "last")


def write_all(folder: Path, text: str) -> None:
    for name in NAMES:
        (folder / name).write_text(text)


def test_files_appear_together_in_a_new_folder(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with atomic_writes(folder, NAMES) as temporary:
        write_all(temporary, "new")
        assert not folder.exists()
    assert {file.name: file.read_text() for file in folder.iterdir()} == dict.fromkeys(NAMES, "new")
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("path", [".", "link"])
def test_files_join_those_of_a_folder_that_is_there(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    write_all(folder, "old")
    (folder / "other").write_text("other")
    (folder / "link").symlink_to(folder)
    monkeypatch.chdir(folder)
    with atomic_writes(Path(path), NAMES) as temporary:
        write_all(temporary, "new")
        assert (folder / "last").read_text() == "old"
    assert [(folder / name).read_text() for name in (*NAMES, "other")] == ["new"] * 3 + ["other"]
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_that_is_a_circle_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError), atomic_writes(tmp_path / "circle", NAMES) as temporary:
        write_all(temporary, "new")
    assert os.listdir(tmp_path) == ["circle"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("is_there", [False, True])
def test_after_an_error_a_folder_is_as_it_was(is_there: bool, error: type, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    if is_there:
        folder.mkdir()
        write_all(folder, "old")
    with pytest.raises(error):
        with atomic_writes(folder, NAMES) as temporary:
            (temporary / "first").write_text("new")
            raise error
    assert os.listdir(tmp_path) == (["out"] if is_there else [])
    assert not is_there or {file.read_text() for file in folder.iterdir()} == {"old"}


@pytest.mark.parametrize("moved", range(6))
@pytest.mark.parametrize("is_killed", [False, True])
def test_older_files_come_back_or_the_last_is_missing(
    is_killed: bool, moved: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error they come back. After a kill none is taken for what it isn't."""
    folder = tmp_path / "out"
    folder.mkdir()
    write_all(folder, "old")
    rename, renamed = os.replace, 0

    def replace(source: Path, target: Path) -> None:
        nonlocal renamed
        renamed += 1
        if renamed == moved + 1:
            if is_killed:
                os._exit(0)
            raise OSError("the disk is broken")
        rename(source, target)

    def write() -> None:
        with atomic_writes(folder, NAMES) as temporary:
            write_all(temporary, "new")

    monkeypatch.setattr(os, "replace", replace)
    if is_killed:
        run_forked(write, tmp_path / "errors")
        assert moved == 0 or not (folder / "last").exists()
    else:
        with pytest.raises(OSError, match="the disk is broken"):
            write()
        assert {path.name: path.read_text() for path in folder.iterdir()} == dict.fromkeys(
            NAMES, "old"
        )


def test_an_error_between_new_files_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.replace

    def replace(source: Path, target: Path) -> None:
        if target.name == "last":
            raise OSError("the disk is broken")
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="the disk is broken"):
        with atomic_writes(tmp_path, NAMES) as temporary:
            write_all(temporary, "new")
    assert os.listdir(tmp_path) == []


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> List[str]:
    """What is synced and moved, in that order."""
    rename, fsync = os.replace, os.fsync
    events: List[str] = []

    def replace(source: Path, target: Path) -> None:
        events.append(f"move {Path(target).name}")
        rename(source, target)

    def note(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        events.append(f"sync {path.name}")
        fsync(descriptor)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "fsync", note)
    return events


@pytest.mark.parametrize("is_there", [False, True])
def test_a_name_comes_after_the_content_and_is_waited_for(
    is_there: bool, events: List[str], tmp_path: Path
) -> None:
    """A power cut can't leave a name without its content, nor take back what was finished."""
    folder = tmp_path / "out"
    if is_there:
        folder.mkdir()
    with atomic_writes(folder, ["a", "b"]) as temporary:
        (temporary / "a").write_text("new")
        (temporary / "b").write_text("new")
    if is_there:
        moves = [[f"sync {name}", f"move {name}", "sync out"] for name in "ab"]
        assert events == ["sync out", *moves[0], *moves[1]]
    else:
        assert sorted(events[:2]) == ["sync a", "sync b"]
        assert events[2:] == ["sync out", "move out", f"sync {tmp_path.name}"]
    events.clear()
    with atomic_write(tmp_path / "c") as part:
        part.write_text("new")
    assert events == ["sync c", "move c", f"sync {tmp_path.name}"]


def test_a_file_of_allennlp_is_synced_before_its_name_changes(
    events: List[str], tmp_path: Path
) -> None:
    with written_beside(str(tmp_path / "c")) as part:
        Path(part).write_text("new")
    assert events == ["sync c", "move c", f"sync {tmp_path.name}"]


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_what_is_open_already_is_written_to_and_not_replaced(folder: str, tmp_path: Path) -> None:
    """Such as `/dev/stdout` where a shell sends the output of several programs to one file."""
    with open(tmp_path / "all.txt", "w") as opened:
        with written_beside(f"{folder}/{opened.fileno()}") as part:
            Path(part).write_text("new")
        assert os.path.samestat(os.fstat(opened.fileno()), os.stat(tmp_path / "all.txt"))
    assert (tmp_path / "all.txt").read_text() == "new"


def test_a_file_in_shared_memory_is_replaced_when_it_is_whole() -> None:
    with TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder, "out.txt")
        path.write_text("old")
        with written_beside(str(path)) as part:
            Path(part).write_text("new")
            assert path.read_text() == "old"
        assert path.read_text() == "new"


def test_a_folder_that_is_made_once_is_synced_before_its_name_changes(
    events: List[str], tmp_path: Path
) -> None:
    make_once(tmp_path / "out", lambda part: write_all(part, "new"))
    *synced, folder = events[: events.index("move out")]
    assert sorted(synced) == sorted(f"sync {name}" for name in (*NAMES, CHECKSUMS, MANIFEST))
    assert folder == f"sync out{PART}"
    assert events[-2:] == ["move out", f"sync {tmp_path.name}"]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_only_a_file_system_that_cannot_sync_is_passed_over(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError) if number == errno.EIO else nullcontext():
        sync(tmp_path)


def test_a_folder_that_cannot_be_read_can_be_written_to(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    folder.chmod(0o300)
    try:
        with atomic_write(folder / "file") as part:
            part.write_text("new")
        assert (folder / "file").read_text() == "new"
    finally:
        folder.chmod(0o700)


def test_files_for_a_folder_that_is_there_need_nothing_above_it(tmp_path: Path) -> None:
    """What lies above may be another disk, or not to be written to."""
    (tmp_path / "out").mkdir()
    with atomic_writes(tmp_path / "out", ["a.txt"]) as folder:
        assert folder.parent.parent == tmp_path / "out"
        (folder / "a.txt").write_text("new")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.txt"]


@pytest.mark.parametrize("path", ["circle", "circle/out", "file", "file/out", "nowhere/out"])
def test_a_folder_has_no_file_and_no_lost_link_on_its_way(path: str, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "nowhere").symlink_to("none")
    (tmp_path / "file").touch()
    what = "is a file" if path.startswith("file") else "is a link that leads nowhere"
    with pytest.raises(ConfigurationError, match=f"{path}: expected a folder to write .* {what}"):
        check_folder(tmp_path / path, ["x"], False, "`--overwrite`")
    check_folder(tmp_path / "nowhere", ["x"], False, "`--overwrite`")


def test_a_folder_to_write_to_is_made_above_and_replaced_only_if_asked(tmp_path: Path) -> None:
    check_folder(tmp_path / "a" / "b", ["x"], False, "`--overwrite`")
    assert (tmp_path / "a").is_dir() and not (tmp_path / "a" / "b").exists()
    (tmp_path / "a" / "x").write_text("old")
    check_folder(tmp_path / "a", ["y"], False, "`--overwrite`")
    check_folder(tmp_path / "a", ["x"], True, "`--overwrite`")
    with pytest.raises(ConfigurationError, match="biLM already: x. .* replace them by `that`."):
        check_folder(tmp_path / "a", ["x"], False, "`that`")
