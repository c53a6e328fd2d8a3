import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_scratch.interop.whole_file import whole_file


def test_what_the_block_wrote_appears_under_the_name(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with whole_file(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_an_older_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with whole_file(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_after_an_error_the_old_file_is_there_and_no_temporary(error: type, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(error):
        with whole_file(path) as temporary:
            temporary.write_text("half")
            raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_after_an_error_no_file_appears_where_none_was(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        with whole_file(tmp_path / "out.txt") as temporary:
            temporary.write_text(str(1 / 0))
    assert os.listdir(tmp_path) == []


def test_a_killed_process_leaves_no_file_under_the_name(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    source = Path(sys.modules[whole_file.__module__].__file__ or "")
    killed = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import os, pathlib, signal\n"
            f"exec(pathlib.Path({str(source)!r}).read_text())\n"
            f"with whole_file(pathlib.Path({str(path)!r})) as temporary:\n"
            f"    temporary.write_text('half')\n"
            f"    os.kill(os.getpid(), signal.SIGKILL)\n",
        ]
    )
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name != path.name and left.read_text() == "half"


def test_two_processes_do_not_share_a_temporary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.txt"
    with whole_file(path) as ours:
        monkeypatch.setattr(os, "getpid", lambda: -7)
        with whole_file(path) as theirs:
            assert ours != theirs
            theirs.write_text("theirs")
        ours.write_text("ours")
    assert path.read_text() == "ours"
