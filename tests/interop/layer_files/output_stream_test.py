import os
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Callable, Iterator, List

import h5py
import numpy
import pytest

from elmo_scratch.interop.layer_files.hdf5 import OutputStream
from tests.interop.full_disk import has_such_a_limit, printed_by

FILL_THE_DISK = """
import os
import resource
from pathlib import Path
from typing import List

from elmo_scratch.interop.layer_files.hdf5 import OutputStream

for count, size in ((3000, 10), (60, 5000)):
    for limit in (0, 1000, 20_000, 200_000, 1_000_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            with OutputStream.open(Path("part"), Path("layers.hdf5")) as stream:
                with stream.hdf5_file() as file:
                    for number in range(count):
                        file[str(number)] = [float(number)] * size
        except OSError as error:
            print(error, os.path.getsize("part") <= limit)
"""

INTERRUPT_THE_END = """
import signal
import sys
from pathlib import Path

from elmo_scratch.interop.layer_files.hdf5 import OutputStream

def interrupt(frame, event, _):
    if event == "call" and frame.f_code is OutputStream.truncate.__code__:
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)

# What runs in the background of a shell has SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    with OutputStream.open(Path("part"), Path("layers.hdf5")) as stream:
        with stream.hdf5_file() as file:
            file["0"] = [1.0]
            sys.setprofile(interrupt)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_hdf5_writes_a_file(tmp_path: Path) -> None:
    with OutputStream.open(tmp_path / "part", tmp_path / "layers.hdf5") as stream:
        with stream.hdf5_file() as file:
            for number in range(30):
                file[str(number)] = [float(number)] * 100
            stream.check()
    with h5py.File(tmp_path / "part", "r") as file:
        assert len(file) == 30
        assert [file[str(number)][99] for number in range(30)] == list(map(float, range(30)))


@pytest.mark.parametrize("has_many_names, superblock", [(False, b"\0"), (True, b"\2")])
def test_old_versions_of_hdf5_read_the_file(
    tmp_path: Path, has_many_names: bool, superblock: bytes
) -> None:
    with OutputStream.open(tmp_path / "part", tmp_path / "layers.hdf5") as stream:
        with stream.hdf5_file(has_many_names=has_many_names):
            pass
    # The version that HDF5 had from the first, and that it has had since 1.8.
    assert (tmp_path / "part").read_bytes()[:9] == b"\x89HDF\r\n\x1a\n" + superblock


def test_the_time_of_writing_is_not_in_the_file(tmp_path: Path) -> None:
    written = []
    for seconds in (0.0, 1.1):
        time.sleep(seconds)  # HDF5 counts whole ones
        with OutputStream.open(tmp_path / "part", tmp_path / "layers.hdf5") as stream:
            with stream.hdf5_file(has_many_names=True) as file:
                file["0"] = [1.0]
        written.append((tmp_path / "part").read_bytes())
    assert written[0] == written[1]


def test_an_error_in_the_block_comes_out(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        with OutputStream.open(tmp_path / "part", tmp_path / "layers.hdf5") as stream:
            with stream.hdf5_file() as file:
                file["0"] = [1.0]
                raise ZeroDivisionError
    assert stream.closed


def test_an_interruption_at_the_end_of_a_file_ends_no_process(tmp_path: Path) -> None:
    assert printed_by(INTERRUPT_THE_END, tmp_path) == "interrupted\n"


@has_such_a_limit
def test_a_full_disk_is_an_error_and_the_process_lives_on(tmp_path: Path) -> None:
    assert (
        printed_by(FILL_THE_DISK, tmp_path)
        == "[Errno 27] File too large: 'layers.hdf5' True\n" * 10
    )


@contextmanager
def interrupted_at(method: Callable[..., Any]) -> Iterator[None]:
    """Ctrl-C, before the first step of a method: the next time it runs in the block."""
    signals = [signal.SIGINT]

    def interrupt(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is method.__code__ and signals:
            signal.raise_signal(signals.pop())

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.setprofile(interrupt)
    try:
        yield
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGINT, before)
        assert not signals


@pytest.mark.parametrize("method", [OutputStream.write, OutputStream.truncate])
def test_an_interruption_comes_out_when_the_file_is_closed(
    method: Callable[..., Any], tmp_path: Path
) -> None:
    closed = False
    with interrupted_at(method), pytest.raises(KeyboardInterrupt):
        with OutputStream.open(tmp_path / "part", tmp_path / "layers.hdf5") as stream:
            with stream.hdf5_file() as file:
                file["0"] = [1.0] * 1000
                file["1"] = [1.0] * 1000
            closed = True
    assert closed


def test_an_interruption_while_hdf5_reads_comes_out_too(tmp_path: Path) -> None:
    with interrupted_at(OutputStream.readinto), pytest.raises(KeyboardInterrupt):
        with OutputStream.open(tmp_path / "part", tmp_path / "layers.hdf5") as stream:
            assert stream.readinto(bytearray(b"x" * 6)) == 6
            stream.check()


def test_an_interruption_elsewhere_comes_at_once(tmp_path: Path) -> None:
    with interrupted_at(elsewhere), pytest.raises(KeyboardInterrupt):
        with OutputStream.open(tmp_path / "part", tmp_path / "layers.hdf5"):
            elsewhere()
            pytest.fail("went on")


def elsewhere() -> None:
    """A function that HDF5 doesn't call."""


def test_buffers_are_written_end_to_end_at_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = numpy.arange(24, dtype="<i4").reshape(3, 8)
    pwrite = os.pwrite
    calls: List[int] = []

    def write(file: int, buffer: bytes, place: int) -> int:
        calls.append(place)
        return pwrite(file, buffer[:at_once], place)

    # All at once, in two parts, in many.
    for at_once in (1000, 70, 7):
        monkeypatch.setattr(os, "pwrite", write)
        monkeypatch.setattr(
            os, "pwritev", lambda file, arrays, place: write(file, b"".join(arrays), place)
        )
        with OutputStream.open(tmp_path / "part", tmp_path / "layers.hdf5") as stream:
            stream.write(b"crane")
            stream.write_at(3, [numbers[:2], numbers[2]])
            # It goes on from where it was.
            stream.write(b"s")
        assert (len(calls) > 1) == (at_once < numbers.nbytes)
        calls.clear()
        expected = bytearray(b"cra" + numbers.tobytes())
        expected[5:6] = b"s"
        assert (tmp_path / "part").read_bytes() == expected


def test_more_arrays_than_the_system_takes_at_once_are_written(tmp_path: Path) -> None:
    numbers = numpy.arange(3000, dtype="<i4")
    with OutputStream.open(tmp_path / "part", tmp_path / "layers.hdf5") as stream:
        stream.write_at(0, list(numbers.reshape(-1, 1)))
    assert (tmp_path / "part").read_bytes() == numbers.tobytes()


def test_an_interruption_comes_out_after_arrays_too(tmp_path: Path) -> None:
    with interrupted_at(OutputStream.write_at), pytest.raises(KeyboardInterrupt):
        with OutputStream.open(tmp_path / "part", tmp_path / "layers.hdf5") as stream:
            stream.write_at(0, [numpy.ones(3)])
            stream.write(b"nothing more")
    assert (tmp_path / "part").read_bytes() == b""


def test_what_was_not_written_reads_as_zeros(tmp_path: Path) -> None:
    with OutputStream.open(tmp_path / "part", tmp_path / "layers.hdf5") as stream:
        stream.write(b"crane")
        stream.seek(2)
        buffer = bytearray(b"x" * 6)
        assert stream.readinto(buffer) == 6
        assert buffer == b"ane\0\0\0"
    assert os.path.getsize(tmp_path / "part") == 5
