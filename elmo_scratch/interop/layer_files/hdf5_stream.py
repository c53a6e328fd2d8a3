"""Streams the bytes of an HDF5 file to the disk and reports write errors safely."""

import errno
import io
import os
import signal
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Callable, Container, Iterator, Optional, Sequence

import h5py
import numpy
from h5py import h5f, h5fd, h5p

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptions_held(
    called: Container[CodeType], hold: Callable[[BaseException], None]
) -> Iterator[None]:
    """
    For the block, keeps signals from raising anything in a function that a C library calls, because
    the library would take it for an error of that function. Python runs the handler of a signal
    before its next step. If a library takes all the time, that is the first step of such a
    function, which no `try` inside the function encloses.

    # Parameters

    called : `Container[CodeType]`
        The code of these functions.
    hold : `Callable[[BaseException], None]`
        Receives the errors that a handler raises there. Elsewhere they are raised as usual.
    """
    with ExitStack() as handlers:
        if threading.current_thread() is threading.main_thread():  # Others get no signals.
            for number in SIGNALS:
                handlers.enter_context(_held(number, called, hold))
        yield


@contextmanager
def _held(
    number: signal.Signals, called: Container[CodeType], hold: Callable[[BaseException], None]
) -> Iterator[None]:
    """Does for one signal what `interruptions_held` does for all."""
    before: Any = signal.getsignal(number)
    if not callable(before):  # The signal is ignored, or ends the process.
        yield
        return

    def handle(number: int, frame: Optional[FrameType]) -> None:
        try:
            before(number, frame)
        except BaseException as error:
            if not _is_within(frame, called):
                raise
            hold(error)

    signal.signal(number, handle)
    try:
        yield
    finally:
        signal.signal(number, before)


def _is_within(frame: Optional[FrameType], called: Container[CodeType]) -> bool:
    """Whether one of these functions is running."""
    while frame is not None:
        if frame.f_code in called:
            return True
        frame = frame.f_back
    return False


ARRAYS_AT_ONCE = 1024
"""Linux takes this many buffers in one call of `pwritev`."""


class OutputStream(io.FileIO):
    """
    A new file for HDF5 to write to, which never tells HDF5 that the disk is full.

    HDF5 keeps what it could not write: it tries again when the file is closed and when the process
    ends, and dies there of a segmentation fault. So the stream remembers the first error and
    pretends from then on that all goes well, until HDF5 has closed the file. The stream also holds
    back Ctrl-C and other signals, which HDF5 would take for a write error.

    Made by `OutputStream.open`.
    """

    def __init__(self, path: Path, name: Path) -> None:
        super().__init__(path, "w+")
        self._path, self._name = path, name
        self._error: Optional[BaseException] = None
        self._is_discarded = False

    @classmethod
    @contextmanager
    def open(cls, path: Path, name: Path) -> Iterator["OutputStream"]:
        """
        Opens a stream for the block. `path` is created anew; errors name the file `name`.

        The end of the block raises the first `OSError` of a write, or a `KeyboardInterrupt` that
        came during one.
        """
        stream = cls(path, name)
        called = [
            method.__code__ for method in (cls.write, cls.write_at, cls.readinto, cls.truncate)
        ]
        try:
            with interruptions_held(called, stream._keep):
                yield stream
        finally:
            stream.close()
            stream.check()

    @contextmanager
    def hdf5_file(self, *, has_many_names: bool = False) -> Iterator[h5py.File]:
        """
        Opens an HDF5 file in the stream for the block. After an error the file is unusable.

        `has_many_names` selects the format of HDF5 1.8 (2008), which takes less memory to write.
        All versions read the other format, which stores all names of a group in one piece.
        """
        access = h5p.create(h5p.FILE_ACCESS)
        # Writes go out at once, not when a data set is closed.
        access.set_sieve_buf_size(0)
        earliest = h5f.LIBVER_V18 if has_many_names else h5f.LIBVER_EARLIEST
        access.set_libver_bounds(earliest, h5f.LIBVER_LATEST)
        access.set_fileobj_driver(h5fd.fileobj_driver, self)
        creation = h5p.create(h5p.FILE_CREATE)
        # Without time stamps the same numbers always make the same file.
        creation.set_obj_track_times(False)
        created = h5f.create(os.fsencode(self._path), h5f.ACC_TRUNC, fcpl=creation, fapl=access)
        file: Optional[h5py.File] = None
        try:
            file = h5py.File(created)
            yield file
        except BaseException:
            self._is_discarded = True
            raise
        finally:
            (created if file is None else file).close()

    def check(self) -> None:
        """Raises the `OSError` or `KeyboardInterrupt` that a write met, if any."""
        if self._error is not None:
            raise self._error

    def write_at(self, place: int, arrays: Sequence[numpy.ndarray]) -> None:
        """
        Writes C-contiguous arrays end to end at the byte `place`, or pretends to. The write
        bypasses HDF5 and leaves the stream's own position alone.
        """
        try:
            for first in range(0, len(arrays), ARRAYS_AT_ONCE):
                if self._is_discarded:
                    break
                group: Sequence[Any] = arrays[first : first + ARRAYS_AT_ONCE]
                end = place + os.pwritev(self.fileno(), group, place)
                for array in group:
                    place += array.nbytes
                    while end < place:  # The system took less than all.
                        rest = array.ravel().view(numpy.uint8)[end - place :]
                        end += os.pwrite(self.fileno(), rest, end)
        except OSError as error:
            self._keep(error)

    def readinto(self, buffer: Any) -> int:
        """Fills the whole buffer, with zeros beyond the end of the file."""
        view = memoryview(buffer).cast("B")
        count = 0
        while read := super().readinto(view[count:]):
            count += read
        view[count:] = bytes(len(view) - count)
        return len(view)

    def write(self, buffer: Any) -> int:
        """Writes the whole buffer, or pretends to."""
        size = len(buffer)
        try:
            written = 0
            while written < size and not self._is_discarded:
                written += super().write(buffer[written:] if written else buffer)
        except OSError as error:
            self._keep(error)
        return size

    def truncate(self, size: Optional[int] = None) -> int:
        """Sets the size of the file, or pretends to."""
        size = self.tell() if size is None else size
        try:
            if not self._is_discarded:
                super().truncate(size)
        except OSError as error:
            self._keep(error)
        return size

    def _keep(self, error: BaseException) -> None:
        """Remembers the first error, and discards all later writes."""
        if isinstance(error, OSError):
            number = error.errno or errno.EIO
            error = OSError(number, os.strerror(number), str(self._name))
        self._error = self._error or error
        self._is_discarded = True
