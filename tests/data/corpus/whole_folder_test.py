import errno
import json
import logging
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any, Callable, List

import pytest
from allennlp.common.checks import ConfigurationError
from filelock import FileLock

from elmo_scratch.data.corpus import prepared_corpus
from elmo_scratch.data.corpus.prepared_corpus import (
    CHECKSUMS,
    MANIFEST,
    PART,
    is_whole,
    make_once,
)

FORK = multiprocessing.get_context("fork")


def fill(part: Path) -> None:
    (part / "a.txt").write_text("some text")
    (part / "b.txt").write_text("more")


def never(part: Path) -> None:
    raise AssertionError("the folder is there already")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "key"


def run_and_kill(folder: Path) -> None:
    """Fills a folder in a process that is killed in the middle of it."""

    def fill_and_die(part: Path) -> None:
        (part / "a.txt").write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)

    process = FORK.Process(target=make_once, args=(folder, fill_and_die))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def names_in(folder: Path) -> List[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_a_folder_is_filled_once(folder: Path) -> None:
    make_once(folder, fill)
    make_once(folder, never)
    assert names_in(folder.parent) == ["key"]
    assert names_in(folder) == ["a.txt", "b.txt", CHECKSUMS, MANIFEST]
    checksums = '{\n  "a.txt": 1337638330,\n  "b.txt": 2337469052\n}\n'
    assert (folder / CHECKSUMS).read_text() == checksums
    sizes = {"a.txt": 9, "b.txt": 4, CHECKSUMS: len(checksums)}
    assert json.loads((folder / MANIFEST).read_text()) == sizes


def test_it_has_no_name_until_it_is_whole(folder: Path) -> None:
    def look(part: Path) -> None:
        assert part.parent == folder.parent and not folder.exists()

    make_once(folder, look)
    assert folder.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: os.truncate(folder / "a.txt", 5),
        lambda folder: (folder / "b.txt").unlink(),
        lambda folder: (folder / MANIFEST).unlink(),
        lambda folder: (folder / MANIFEST).write_text('{"a.txt": 9, '),
        lambda folder: (folder / MANIFEST).write_text("[]"),
    ],
    ids=["truncated", "missing", "without manifest", "half a manifest", "not a manifest"],
)
def test_a_damaged_folder_is_made_anew(folder: Path, damage: Callable[[Path], object]) -> None:
    make_once(folder, fill)
    damage(folder)
    assert not is_whole(folder)
    make_once(folder, fill)
    assert is_whole(folder)
    assert (folder / "a.txt").read_text() == "some text"


def test_a_byte_that_is_bent_in_any_file_is_seen_and_told_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_once(folder, fill)
    for name in names_in(folder):
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(content)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            make_once(folder, fill)
        assert caplog.messages == [f"{folder} is damaged and will be made anew"], name
        assert [(folder / file).read_text() for file in ("a.txt", "b.txt")] == ["some text", "more"]


def test_a_folder_of_an_older_version_has_no_checksums(folder: Path) -> None:
    make_once(folder, fill)
    (folder / CHECKSUMS).unlink()
    (folder / MANIFEST).write_text('{"a.txt": 9, "b.txt": 4}')
    assert is_whole(folder)
    make_once(folder, never)


def test_a_record_of_a_file_outside_is_not_followed(folder: Path) -> None:
    make_once(folder, fill)
    (folder / MANIFEST).write_text(json.dumps({os.devnull: 0}))
    assert not is_whole(folder)


def test_the_checksums_are_those_of_all_files_and_no_others(folder: Path) -> None:
    for checksums in ({}, {os.devnull: 0}):
        make_once(folder, fill)
        (folder / CHECKSUMS).write_text(json.dumps(checksums))
        sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
        del sizes[MANIFEST]
        (folder / MANIFEST).write_text(json.dumps(sizes))
        assert not is_whole(folder)


def test_a_process_reads_all_of_a_folder_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_once(folder, fill)
    assert is_whole(folder)
    monkeypatch.setattr(prepared_corpus, "_checksums", None)  # calling it would fail
    assert is_whole(folder)


def test_after_an_error_nothing_is_left(folder: Path) -> None:
    def fail(part: Path) -> None:
        fill(part)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make_once(folder, fail)
    assert names_in(folder.parent) == []
    make_once(folder, fill)


def test_what_a_killed_process_left_is_not_taken_for_whole_and_removed(folder: Path) -> None:
    run_and_kill(folder)
    assert names_in(folder.parent) == [f"key{PART}"]
    make_once(folder, fill)
    assert names_in(folder.parent) == ["key"]
    assert (folder / "a.txt").read_text() == "some text"


def test_what_was_left_of_another_folder_is_removed_unless_somebody_works_on_it(
    folder: Path,
) -> None:
    run_and_kill(folder.with_name("left"))
    (folder.parent / "somebody.part").mkdir()
    (folder.parent / f"busy{PART}").mkdir()
    ready, done = FORK.Event(), FORK.Event()

    def work() -> None:
        with FileLock(f"{folder.with_name('busy')}.lock"):
            ready.set()
            done.wait(30)

    worker = FORK.Process(target=work)
    worker.start()
    assert ready.wait(30)
    make_once(folder, fill)
    done.set()
    worker.join()
    assert names_in(folder.parent) == [f"busy{PART}", "key", "somebody.part"]


def test_what_another_user_left_is_not_in_the_way(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / f"theirs{PART}").mkdir(parents=True)
    acquire = FileLock.acquire

    def may_not(lock: FileLock, *arguments: Any, **settings: Any) -> Any:
        if "theirs" in lock.lock_file:
            raise PermissionError
        return acquire(lock, *arguments, **settings)

    monkeypatch.setattr(FileLock, "acquire", may_not)
    make_once(folder, fill)
    assert names_in(folder.parent) == ["key", f"theirs{PART}"]


def test_of_several_processes_one_fills_and_the_others_wait(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    barrier = FORK.Barrier(3)

    def slowly(part: Path) -> None:
        with open(log, "a") as file:
            file.write("filled\n")
        fill(part)

    def start() -> None:
        barrier.wait(30)
        make_once(folder, slowly)
        os._exit(0 if is_whole(folder) else 1)

    workers = [FORK.Process(target=start) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert log.read_text() == "filled\n"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_an_error_that_tells_the_way_out(folder: Path, code: int) -> None:
    def fill_up(part: Path) -> None:
        fill(part)
        raise OSError(code, os.strerror(code))

    with pytest.raises(ConfigurationError, match="cache: the disk is full.*ELMO_SCRATCH_CACHE"):
        make_once(folder, fill_up)
    assert names_in(folder.parent) == []


def test_an_error_names_the_cache_and_no_lock(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def may_not(lock: FileLock, **_: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", lock.lock_file)

    monkeypatch.setattr(FileLock, "acquire", may_not)
    with pytest.raises(ConfigurationError, match=f"^{folder.parent}: cannot be written .Permissi"):
        make_once(folder, fill)


def test_a_place_that_is_a_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "key", tmp_path / "file" / "cache" / "key"):
        with pytest.raises(ConfigurationError, match="file.*: cannot be written"):
            make_once(folder, never)


def test_a_disk_that_can_only_be_read_is_an_error_that_tells_the_way_out(folder: Path) -> None:
    def fail(part: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with pytest.raises(ConfigurationError, match="Read-only file system.*ELMO_SCRATCH_CACHE"):
        make_once(folder, fail)


def test_other_errors_of_files_stay_what_they_are(folder: Path) -> None:
    def fail(part: Path) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    with pytest.raises(OSError, match="the disk is broken"):
        make_once(folder, fail)


def test_a_folder_that_may_only_be_read_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_once(folder, fill)

    def may_not(*args: object, **kwargs: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "mkdir", may_not)
    make_once(folder, never)
