"""Trainings of AllenNLP: one that is replaced, and workers on several machines."""

import fcntl
import os
import shutil
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, List, Optional

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch_compat.training import (
    INTERFACE,
    LOCK,
    interface_to,
    is_locked,
    keep_replaced_trainings,
    meet_on_one_network,
)


def trained_again(folder: Path, reached: List[str], error: Optional[BaseException] = None) -> None:
    """A training with `--force` that writes these files and ends, by an error if one is given."""

    def train_model(
        params: Any, serialization_dir: str, recover: bool = False, force: bool = False
    ) -> str:
        # As AllenNLP's function begins.
        if force:
            shutil.rmtree(serialization_dir, ignore_errors=True)
        os.makedirs(serialization_dir)
        for name in reached:
            Path(serialization_dir, name).touch()
        if error is not None:
            raise error
        return serialization_dir

    module = SimpleNamespace(train_model=train_model)
    keep_replaced_trainings(module)
    if error is None:
        assert module.train_model({}, f"{folder}/", force=True) == f"{folder}/"
        return
    with pytest.raises(type(error)):
        module.train_model({}, str(folder), force=True)


@pytest.mark.parametrize(
    "reached, error, left",
    [
        (["config.json", "model.tar.gz"], None, ["config.json", "model.tar.gz"]),
        (["config.json"], None, ["config.json"]),
        (["config.json"], KeyboardInterrupt(), ["best.th", "my.txt"]),
        (["out.log"], ConfigurationError("no such type"), ["best.th", "my.txt"]),
        (["model_state_e1_b0.th"], RuntimeError("no memory"), ["model_state_e1_b0.th"]),
    ],
)
def test_a_training_that_is_replaced_comes_back_if_nothing_is_reached(
    reached: List[str], error: Optional[BaseException], left: List[str], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("best.th", "my.txt"):
        (folder / name).touch()
    trained_again(folder, reached, error)
    assert sorted(os.listdir(folder)) == left
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize(
    "of_killed, left", [(["out.log"], ["first.th"]), (["second.th"], ["second.th"])]
)
def test_a_training_that_was_killed_is_replaced_by_force_again(
    of_killed: List[str], left: List[str], tmp_path: Path
) -> None:
    folder, aside = tmp_path / "run", tmp_path / ".run.replaced"
    for one, names in ((aside, ["first.th"]), (folder, of_killed)):
        one.mkdir()
        for name in names:
            (one / name).touch()
    trained_again(folder, [], KeyboardInterrupt())
    assert sorted(os.listdir(folder)) == left
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("kind", ["none", "empty", "link"])
def test_there_may_be_no_training_to_replace(kind: str, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    if kind == "empty":
        folder.mkdir()
    elif kind == "link":
        elsewhere.mkdir()
        (elsewhere / "best.th").touch()
        folder.symlink_to(elsewhere)
        # AllenNLP removes no link, and so can't make the folder.
        trained_again(folder, [], FileExistsError())
        assert os.listdir(elsewhere) == ["best.th"]
        return
    trained_again(folder, ["model.tar.gz"])
    assert os.listdir(tmp_path) == ["run"]


def test_a_training_that_goes_on_is_not_moved_away(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / LOCK).touch()
    with (folder / LOCK).open("r+b") as lock:
        # A lock of another process: this one's own never stands in its way.
        child = os.fork()
        if child == 0:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            time.sleep(60)
            os._exit(0)
        try:
            while not is_locked(str(folder / LOCK)):
                time.sleep(0.01)
            seen: List[List[str]] = []

            def train_model(
                params: Any, serialization_dir: str, recover: bool, force: bool
            ) -> None:
                seen.append(os.listdir(serialization_dir))
                raise ConfigurationError("another process trains there")

            module = SimpleNamespace(train_model=train_model)
            keep_replaced_trainings(module)
            with pytest.raises(ConfigurationError):
                module.train_model({}, str(folder), recover=False, force=True)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert seen == [[LOCK]]
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize(
    ("world_size", "devices", "named", "network"),
    [
        (2, [-1], None, "lo"),
        (4, [-1, -1], None, "lo"),
        (2, [-1], "eth9", "eth9"),
        (2, [-1, -1], None, None),
        (1, None, None, None),
    ],
)
def test_processes_on_several_machines_meet_on_the_network_of_the_first(
    world_size: int,
    devices: Any,
    named: Optional[str],
    network: Optional[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(INTERFACE, named or "")
    if named is None:
        del os.environ[INTERFACE]

    def _train_worker(
        process_rank: int,
        primary_addr: str = "127.0.0.1",
        world_size: int = 1,
        distributed_device_ids: Any = None,
    ) -> Optional[str]:
        return os.environ.get(INTERFACE)

    module = SimpleNamespace(_train_worker=_train_worker)
    meet_on_one_network(module)
    worker = module._train_worker
    assert worker(0, world_size=world_size, distributed_device_ids=devices) == network


def test_the_network_of_an_address_that_has_no_route_is_not_known() -> None:
    assert interface_to("127.0.0.1") == "lo"
    assert interface_to("255.255.255.255") is None
