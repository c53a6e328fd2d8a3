import resource
import signal
import subprocess
import sys
import zlib
from pathlib import Path
from typing import List

import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import layer_cache
from elmo_scratch.embedders.layer_cache import FileStore
from tests.forked import run_forked

ONES = numpy.ones(3, dtype="float32")


def got(store: FileStore, key: bytes) -> List[float]:
    found = store.get(key)
    assert found is not None
    numbers: List[float] = found.tolist()
    return numbers


WRITES_AND_DIES = """
import os, signal, sys, numpy
from elmo_scratch.embedders.layer_cache import FileStore
store = FileStore(sys.argv[1])
store.put({b"theirs": numpy.ones(3, dtype="float32")})
print("written", flush=True)
sys.stdin.read(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_is_made_before_it_is_used(tmp_path: Path) -> None:
    FileStore(str(tmp_path / "layers.lmdb"))
    assert not list(tmp_path.iterdir())


def test_others_see_what_one_keeps_and_a_kill_damages_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "layers.lmdb")
    command = [sys.executable, "-c", WRITES_AND_DIES, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == b"written\n"
        store = FileStore(path)
        assert got(store, b"theirs") == ONES.tolist()
        store.put({b"ours": 2 * ONES})
        other.stdin.write(b".")
        other.stdin.close()
        assert other.wait() == -signal.SIGKILL
    store.put({b"later": 3 * ONES})
    for key, factor in [(b"theirs", 1), (b"ours", 2), (b"later", 3)]:
        assert got(store, key) == (factor * ONES).tolist()


def test_what_two_trainings_computed_at_once_takes_the_room_of_one(tmp_path: Path) -> None:
    path = tmp_path / "layers.lmdb"
    store = FileStore(str(path))
    layers = {bytes([key]): numpy.full(10_000, key, dtype="float32") for key in range(50)}
    for _ in range(2):
        store.put(layers)
        size = path.stat().st_size
        assert 2_000_000 < size < 3_000_000
    store.put({bytes([1]): ONES})
    assert got(store, bytes([1])) == [1.0] * 10_000


def test_its_place_is_that_where_it_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = FileStore("layers.lmdb")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.put({b"ones": ONES})
    assert got(FileStore(str(tmp_path / "layers.lmdb")), b"ones") == [1.0] * 3
    assert not list((tmp_path / "elsewhere").iterdir())


def test_two_embedders_of_one_process_share_a_file(tmp_path: Path) -> None:
    one = FileStore(str(tmp_path / "layers.lmdb"))
    two = FileStore(str(tmp_path / "folder" / ".." / "layers.lmdb"))
    (tmp_path / "folder").mkdir()
    one.put({b"ones": ONES})
    two.put({b"twos": 2 * ONES})
    assert got(one, b"twos") == [2.0] * 3 and got(two, b"ones") == [1.0] * 3


def test_another_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("two years of work " * 1000)
    with pytest.raises(ConfigurationError, match="thesis.txt: expected a file of kept layers"):
        FileStore(str(path)).get(b"key")
    assert path.read_text() == "two years of work " * 1000


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected a file of kept layers"):
        FileStore(str(tmp_path)).get(b"key")


def test_no_room_is_an_error_and_what_was_kept_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layer_cache, "MOST_BYTES", 2**16)
    store = FileStore(str(tmp_path / "layers.lmdb"))
    store.put({b"small": ONES})
    with pytest.raises(ConfigurationError, match="can't be kept.*What was kept before is whole"):
        store.put({b"large": numpy.zeros(2**16, dtype="float32")})
    assert got(store, b"small") == ONES.tolist()
    assert store.get(b"large") is None


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_a_file_that_was_not_copied_to_its_end_is_an_error(share: float, tmp_path: Path) -> None:
    path, copied = tmp_path / "layers", tmp_path / "copied"
    keys = [bytes([number]) for number in range(100)]
    FileStore(str(path)).put({key: numpy.ones(5000, "float32") for key in keys})
    content = path.read_bytes()
    copied.write_bytes(content)
    assert len(got(FileStore(str(copied)), keys[-1])) == 5000
    copied = tmp_path / "cut"
    copied.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ConfigurationError, match="cut: expected [0-9]+ bytes of kept layers, but"):
        FileStore(str(copied)).get(keys[0])
    assert copied.stat().st_size == int(share * len(content))


def test_a_file_whose_pages_are_damaged_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "layers"
    keys = [bytes([number]) for number in range(100)]
    FileStore(str(path)).put({key: numpy.ones(5000, "float32") for key in keys})
    content = bytearray(path.read_bytes())
    # All but the two pages that say where the others are.
    content[8192:] = b"\0" * (len(content) - 8192)
    damaged = tmp_path / "damaged"
    damaged.write_bytes(content)
    with pytest.raises(ConfigurationError, match="damaged: the layers that are kept can't be read"):
        FileStore(str(damaged)).get(keys[0])


def test_a_process_with_few_addresses_is_an_error(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path / "layers"))

    def get() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2**36, 2**36))
        store.get(b"key")

    ended = run_forked(get, tmp_path / "errors")
    assert "Raise that limit (`ulimit -v unlimited`)" in ended.errors.splitlines()[-1]


def test_a_home_folder_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    FileStore("~/kept/layers").put({b"key": numpy.ones(3, "float32")})
    assert (tmp_path / "kept" / "layers").is_file() and not (tmp_path / "~").exists()


def test_layers_that_the_disk_has_bent_are_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "layers.lmdb"
    store = FileStore(str(path))
    store.put({b"one": ONES, b"two": 2 * ONES})
    with store._environment.begin(write=True) as transaction:
        assert transaction.get(b"one crc32") == zlib.crc32(ONES.tobytes()).to_bytes(4, "little")
        transaction.put(b"one", (3 * ONES).tobytes())
    assert store.get(b"one") is None and got(store, b"two") == [2, 2, 2]
    assert caplog.messages == [f"{path}: some layers are damaged; they are made anew"]
    store.put({b"one": ONES})
    assert got(store, b"one") == [1, 1, 1]


def test_layers_of_an_older_version_have_no_checksum(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path / "layers.lmdb"))
    with store._environment.begin(write=True) as transaction:
        transaction.put(b"one", ONES.tobytes())
    assert got(store, b"one") == [1, 1, 1]
