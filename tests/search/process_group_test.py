import os
import shutil
import sys
import time
from pathlib import Path
from typing import List

import pytest

from elmo_scratch.search import tasks as processes
from elmo_scratch.search.tasks import ProcessGroup, stop_left_over

SLEEPING = "import sys, time; print('begun', flush=True); time.sleep(60)"


def started(folder: Path, program: str) -> ProcessGroup:
    folder.mkdir(exist_ok=True)
    command: List[str] = [sys.executable, "-c", program, str(folder)]
    return ProcessGroup(command, folder / "log.txt", {**os.environ, "VARIABLE": "its own"})


def wait_for(group: ProcessGroup) -> None:
    while group.status is None:
        time.sleep(0.02)


def wait_for_text(file: Path) -> str:
    while not file.exists() or not file.read_text(encoding="utf-8"):
        time.sleep(0.02)
    return file.read_text(encoding="utf-8")


def wait_until_over(pid: int) -> None:
    """Whoever takes care of orphans may not have asked about it yet."""
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        time.sleep(0.02)


def leaving_a_child(child: Path, ending: str) -> str:
    """A program that starts another one, and ends itself."""
    return (
        "import pathlib, subprocess, sys;"
        f" words = [sys.executable, '-c', {SLEEPING!r}, sys.argv[1]];"
        f" child = subprocess.Popen(words);"
        f" pathlib.Path({str(child)!r}).write_text(str(child.pid)); {ending}"
    )


def test_what_it_prints_goes_to_a_file_and_its_status_is_told(tmp_path: Path) -> None:
    program = (
        "import os, sys; print(os.environ['VARIABLE'], sys.stdin.read() == '', flush=True);"
        " print('error', file=sys.stderr); sys.exit(3)"
    )
    group = started(tmp_path / "one", program)
    wait_for(group)
    assert group.status == 3
    log = (tmp_path / "one" / "log.txt").read_text(encoding="utf-8")
    assert log.splitlines() == ["its own True", "error"]
    group.kill()
    group.stop()
    assert group.status == 3


def test_all_that_it_starts_ends_with_it(tmp_path: Path) -> None:
    child = tmp_path / "child"
    group = started(tmp_path / "one", leaving_a_child(child, "child.wait()"))
    pid = int(wait_for_text(child))
    wait_for_text(tmp_path / "one" / "log.txt")
    group.stop()
    assert group.status == -9
    wait_until_over(pid)


def test_what_it_leaves_when_it_fails_ends_too(tmp_path: Path) -> None:
    child = tmp_path / "child"
    group = started(tmp_path / "one", leaving_a_child(child, "sys.exit(3)"))
    wait_for(group)
    wait_until_over(int(child.read_text(encoding="utf-8")))
    assert group.status == 3


def test_what_it_leaves_when_it_ends_well_may_go_on(tmp_path: Path) -> None:
    child = tmp_path / "child"
    group = started(tmp_path / "one", leaving_a_child(child, "sys.exit(0)"))
    wait_for(group)
    pid = int(child.read_text(encoding="utf-8"))
    group.stop()
    os.kill(pid, 0)
    # Its starter is gone, but a child has the folder among its words.
    stop_left_over(group.pid, tmp_path / "two")
    os.kill(pid, 0)
    stop_left_over(group.pid, tmp_path / "one")
    wait_until_over(pid)


@pytest.mark.parametrize("has_files", [True, False])
def test_one_whose_starter_was_killed_is_stopped(
    has_files: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_files:
        if shutil.which("ps") is None:
            pytest.skip("there is no `ps`")
        monkeypatch.setattr(processes, "PROCESSES", tmp_path / "none")
    group = started(tmp_path / "trial-0", SLEEPING)
    # The number may be another process's by now.
    stop_left_over(group.pid, tmp_path / "trial-1")
    stop_left_over(os.getpid(), tmp_path / "trial-0")
    time.sleep(0.2)
    assert group.status is None
    stop_left_over(group.pid, tmp_path / "trial-0")
    wait_for(group)
    assert group.status == -9
    stop_left_over(group.pid, tmp_path / "trial-0")
