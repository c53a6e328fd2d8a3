"""
Below h5py: opens HDF5 files that may come from strangers, and writes others by a stream that keeps
write errors from HDF5, which they would crash.

HDF5's library trusts blocks of three kinds. Version 2.0.0 reads some global heaps (of texts) and
some local heaps (of names) forever, and a B-tree that contains itself crashes it. So it gets such a
block only after a look at what the block leads to.
"""

import errno
import io
import os
import signal
import struct
import threading
import weakref
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Callable, Container, Iterator, Optional, Sequence, Set, Tuple

import h5py
import numpy
from h5py import h5f, h5fd, h5p

HEAP_HEAD = struct.Struct("<4sB3xQ")
"""The head of a global heap: its signature, its version and its size in bytes."""

OBJECT_HEAD = struct.Struct("<HH4xQ")
"""The head of an object in a heap: its number, its reference count and its size in bytes."""

LOCAL_HEAP = struct.Struct("<4sB3xQQQ")
"""A local heap: signature, version, size of its data, place of the first free block, address."""

FREE_BLOCK = struct.Struct("<QQ")
"""A free block in a local heap: the place of the next one, and its size."""

LAST_FREE_BLOCK = 1
"""The last free block has this in the place of the next one."""

TREE_NODE = struct.Struct("<4sBBHQQ")
"""The head of a B-tree's node: signature, kind, level, number of children, and its neighbours."""

NAMES, CHUNKS = 0, 1
"""The kinds of B-trees: of the names in a group, and of the chunks of a data set."""

ADDRESS_SIZE = 8
"""Bytes of an address, of a size, and of a name's place."""

CHUNK_CHILDREN = 64
"""The children of a node of chunks; only a program that asks for it makes nodes of another size."""

ALWAYS_LOOKS, BYTES_A_LOOK = 2**16, 4
"""
How often a file may be looked into: so often always, and once more for so many bytes. A text, a
free block or a child has 16 bytes at least, but blocks that share them would take forever.
"""

Look = Callable[[bytes, int], None]
"""A further look at a block of a file of so many bytes. It raises `ValueError`."""


class CheckedInput:
    """
    What HDF5 reads through. It raises `ValueError` for a block that HDF5 must not get.

    HDF5 reads blocks of its own one by one, each from its first byte on: it joins neighbouring
    blocks for those drivers alone that ask for it, and h5py's driver for Python's objects doesn't.

    # Source

    The HDF5 File Format Specification, III.A.1 "Version 1 B-trees", III.D "Local Heaps" and III.E
    "Global Heap". The loops are in `H5HG__cache_heap_deserialize` and `H5HL__fl_deserialize`.
    """

    def __init__(self, path: Path, look: Optional[Look] = None) -> None:
        self._file = -1
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._size = os.fstat(self._file).st_size
        self._place = 0
        self._look = look
        self._looks = ALWAYS_LOOKS + self._size // BYTES_A_LOOK
        self._checked: Set[Tuple[int, int]] = set()
        head = os.pread(self._file, 16, 0)
        if not head.startswith(b"\x89HDF\r\n\x1a\n"):
            raise ValueError("its first bytes are not those of HDF5")
        sizes = head[13:15] if head[8] < 2 else head[9:11]
        if sizes != bytes([ADDRESS_SIZE, ADDRESS_SIZE]):
            raise ValueError(f"expected addresses of {ADDRESS_SIZE} bytes")

    def __del__(self) -> None:
        # HDF5 lets go of the object when it closes the file.
        if self._file >= 0:
            os.close(self._file)

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        self._place = self._size if whence == os.SEEK_END else place
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Fills the whole buffer, with zeros beyond the end of the file."""
        view = memoryview(buffer)
        size = len(view)
        count = os.preadv(self._file, (view,), self._place)
        while count < size:
            read = os.preadv(self._file, (view[count:],), self._place + count)
            if not read:
                view[count:] = bytes(size - count)
                break
            count += read
        check = self.CHECKS.get(view[:4].tobytes())
        if check is not None and (self._place, size) not in self._checked:
            check(self, self._place, size)
            self._checked.add((self._place, size))
        if self._look is not None:
            self._look(view.tobytes(), self._size)
        return size

    def _unpacked(self, kind: struct.Struct, place: int) -> Any:
        """What lies at a place, with zeros beyond the end of the file."""
        self._looks -= 1
        if self._looks < 0:
            raise ValueError("expected blocks of their own, but too many share the same bytes")
        found = os.pread(self._file, kind.size, min(place, self._size))
        return kind.unpack(found.ljust(kind.size, b"\0"))

    def _check_global_heap(self, place: int, size: int) -> None:
        """Refuses a heap with an object that doesn't lead to the next one."""
        _, version, heap_size = self._unpacked(HEAP_HEAD, place)
        if version != 1:
            return
        end = min(place + heap_size, self._size)
        at = place + HEAP_HEAD.size
        while at + OBJECT_HEAD.size <= end:
            number, _, object_size = self._unpacked(OBJECT_HEAD, at)
            # Object 0 is the free space, and its head is a part of it.
            step = OBJECT_HEAD.size + object_size + -object_size % 8 if number else object_size
            if not step or at + step > end:
                raise ValueError(f"the texts at byte {place} don't end")
            at += step

    def _check_local_heap(self, place: int, size: int) -> None:
        """Refuses a heap whose free blocks lead back to one of them."""
        _, version, heap_size, free, address = self._unpacked(LOCAL_HEAP, place)
        if version != 0:
            return
        met: Set[int] = set()
        # HDF5 itself refuses a block outside of the heap.
        while free != LAST_FREE_BLOCK and free + FREE_BLOCK.size <= heap_size:
            if free in met:
                raise ValueError(f"the free space among the names at byte {place} doesn't end")
            met.add(free)
            free, _ = self._unpacked(FREE_BLOCK, address + free)

    def _check_tree(self, place: int, size: int) -> None:
        """Refuses a node with a child that is not one level below it."""
        signature, kind, level, num_children, _, _ = self._unpacked(TREE_NODE, place)
        if kind not in (NAMES, CHUNKS) or level == 0:
            return
        key_size = ADDRESS_SIZE
        if kind == CHUNKS:
            keys = size - TREE_NODE.size - CHUNK_CHILDREN * ADDRESS_SIZE
            key_size, rest = divmod(keys, CHUNK_CHILDREN + 1)
            if key_size <= 0 or rest:
                raise ValueError(f"expected a tree of {CHUNK_CHILDREN} chunks a node")
        child = struct.Struct(f"<{key_size}xQ")
        for number in range(num_children):
            (address,) = self._unpacked(child, place + TREE_NODE.size + number * child.size)
            if self._unpacked(TREE_NODE, address)[:3] != (signature, kind, level - 1):
                raise ValueError(f"the tree at byte {place} doesn't end")

    def _refuse_image(self, place: int, size: int) -> None:
        """Refuses an image of HDF5's cache: HDF5 would take blocks out of it, unseen here."""
        raise ValueError(f"expected no image of HDF5's cache, but there is one at byte {place}")

    CHECKS = {
        b"GCOL": _check_global_heap,
        b"HEAP": _check_local_heap,
        b"TREE": _check_tree,
        b"MDCI": _refuse_image,
    }
    """The checks of blocks by their signatures."""


def open_hdf5(path: Path, look: Optional[Look] = None) -> h5py.File:
    """
    Opens a file to read. What HDF5 would not survive is an error when it is read.

    # Parameters

    path : `Path`
        The file.
    look : `Look`, optional (default = `None`)
        A further look at each block.

    # Raises

    OSError
        If there is no such file.
    Exception
        Of nearly every kind, if the file is damaged: those of h5py.
    """
    with _access_by(CheckedInput(path, look)) as access:
        access.set_fclose_degree(h5f.CLOSE_STRONG)
        opened = h5f.open(os.fsencode(path), h5f.ACC_RDONLY, fapl=access)
    file = h5py.File(opened)
    # HDF5 closes what is left open when the process ends: too late for a driver in Python.
    weakref.finalize(file, _close, opened)
    return file


@contextmanager
def _access_by(driver: Any) -> Iterator[h5p.PropFAID]:
    """
    Settings for opening a file in Python. They go when the block ends, whoever keeps an error with
    its frames: HDF5 frees those that are left when the process ends, and dies of it.
    """
    access = h5p.create(h5p.FILE_ACCESS)
    try:
        access.set_fileobj_driver(h5fd.fileobj_driver, driver)
        yield access
    finally:
        access.close()


def _close(opened: h5f.FileID) -> None:
    if opened.valid:
        h5py.File(opened).close()


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
        creation = h5p.create(h5p.FILE_CREATE)
        # Without time stamps the same numbers always make the same file.
        creation.set_obj_track_times(False)
        with _access_by(self) as access:
            # Writes go out at once, not when a data set is closed.
            access.set_sieve_buf_size(0)
            earliest = h5f.LIBVER_V18 if has_many_names else h5f.LIBVER_EARLIEST
            access.set_libver_bounds(earliest, h5f.LIBVER_LATEST)
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
