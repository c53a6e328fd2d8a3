import errno
import fcntl
import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable, ContextManager

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.training import util

from elmo_scratch.files.atomic import atomic_write, atomic_writes
from elmo_scratch_compat.unfinished import LOCK, remove_leftovers, unfinished
from elmo_scratch_compat.whole_files import written_beside
from tests.forked import run_forked

Writer = Callable[[Path], ContextManager]


def folder_of_files(target: Path) -> ContextManager:
    return atomic_writes(target, ["inner"])


def file_beside(target: Path) -> ContextManager:
    return written_beside(str(target))


WRITERS = [atomic_write, folder_of_files, file_beside]


def write(writer: Writer, target: Path) -> None:
    with writer(target) as part:
        (Path(part) / "inner" if writer is folder_of_files else Path(part)).write_text("new")


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_killed_writer_left_goes_with_the_next_write(
    writer: Writer, is_there: bool, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path / "out"
    if is_there:
        write(writer, target)

    def write_half() -> None:
        with writer(target) as part:
            (Path(part) / "inner" if writer is folder_of_files else Path(part)).write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)

    assert run_forked(write_half, tmp_path_factory.mktemp("log") / "errors").status == -9
    assert len(list(tmp_path.rglob("*.part"))) == 1
    write(writer, target)
    assert list(tmp_path.rglob("*.part")) == []
    assert os.listdir(tmp_path) == ["out"]


def test_what_a_living_writer_writes_stays(tmp_path: Path) -> None:
    with unfinished(str(tmp_path / "out")) as ours:
        Path(ours).write_text("ours")
        with unfinished(str(tmp_path / "out")) as theirs:
            assert Path(ours).read_text() == "ours" and theirs != ours
        remove_leftovers(str(tmp_path), "out")
        assert Path(ours).read_text() == "ours"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    [
        ".out.0123456789ab.7.part",  # of a writer that couldn't lock
        ".other.0123456789ab.7.part",
        ".out.old.0123456789ab.7.part",
        ".out.0a1b2c3d.7.part",  # of an older version, which locks nothing
        "out.0123456789ab.7.part",
    ],
)
def test_what_is_not_known_to_be_left_stays(name: str, tmp_path: Path) -> None:
    left = tmp_path / name
    left.mkdir()
    (left / "out").write_text("precious")
    if name != ".out.0123456789ab.7.part":
        (left / LOCK).touch()
    remove_leftovers(str(tmp_path), "out")
    assert (left / "out").read_text() == "precious"


def test_a_link_is_not_followed_to_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    for name in (LOCK, "precious"):
        (tmp_path / "else" / name).touch()
    (tmp_path / ".out.0123456789ab.7.part").symlink_to("else")
    own = tmp_path / ".out.0123456789ac.7.part"
    own.mkdir()
    (own / LOCK).touch()
    (own / "out").symlink_to(tmp_path / "else")
    remove_leftovers(str(tmp_path), "out")
    assert (tmp_path / "else" / "precious").exists() and not own.exists()


@pytest.mark.parametrize("function", ["os.mkdir", "os.open"])
def test_a_folder_that_is_taken_for_a_leftover_before_its_lock_is_made_anew(
    function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _, name = function.partition(".")
    original = getattr(os, name)

    def then_look(path: str, *arguments: Any) -> Any:
        """Another writer looks for leftovers in this very moment."""
        monkeypatch.setattr(os, name, original)
        result = original(path, *arguments)
        assert len(os.listdir(tmp_path)) == 1
        remove_leftovers(str(tmp_path), "out")
        assert os.listdir(tmp_path) == []
        return result

    monkeypatch.setattr(os, name, then_look)
    with unfinished(str(tmp_path / "out")) as part:
        Path(part).write_text("new")
        remove_leftovers(str(tmp_path), "out")
        assert Path(part).read_text() == "new"
    assert os.listdir(tmp_path) == []


def test_where_nothing_can_be_locked_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with ExitStack() as living:
        with monkeypatch.context() as without_locks:
            without_locks.setattr(fcntl, "flock", refused)
            part = living.enter_context(unfinished(str(tmp_path / "out")))
            Path(part).write_text("ours")
        # Another machine may think that it has locked what this one couldn't lock.
        remove_leftovers(str(tmp_path), "out")
        assert Path(part).read_text() == "ours"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", [255 * "x", 85 * "語"])
@pytest.mark.parametrize("writer", WRITERS)
def test_the_longest_names_can_be_written(writer: Writer, name: str, tmp_path: Path) -> None:
    for _ in range(2):
        write(writer, tmp_path / name)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("writer", WRITERS)
def test_errors_name_what_is_written_and_no_temporary_path(writer: Writer, tmp_path: Path) -> None:
    target = tmp_path / "link"
    target.symlink_to("out")
    with pytest.raises(OSError) as missing, writer(target) as part:
        open(Path(part) / "no" / "file")
    assert missing.value.filename == str(target / "no" / "file")
    with pytest.raises(ConfigurationError) as wrong, writer(target) as part:
        raise ConfigurationError(f"{part}: expected this, but got that")
    assert wrong.value.message == f"{target}: expected this, but got that"
    with pytest.raises(RuntimeError, match=f"^can't write {target}$"), writer(target) as part:
        raise RuntimeError(f"can't write {part}")
    with pytest.raises(FileNotFoundError) as nowhere, writer(tmp_path / "no" / "out") as part:
        Path(part).write_text("new")
    assert nowhere.value.filename == str(tmp_path / "no" / "out")


def test_a_recovered_training_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    left = tmp_path / ".metrics_epoch_0.json.0123456789ab.7.part"
    left.mkdir()
    (left / LOCK).touch()
    Params({"a": 1}).to_file(str(tmp_path / "config.json"))
    with unfinished(str(tmp_path / "metrics.json")) as living:
        util.create_serialization_dir(Params({"a": 1}), str(tmp_path), recover=True, force=False)
        assert not left.exists() and Path(living).parent.exists()
    assert os.listdir(tmp_path) == ["config.json"]
