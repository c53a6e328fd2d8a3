"""The bytes of an HDF5 file on their way to the disk."""

import errno
import io
import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Optional

import h5py
from h5py import h5f, h5fd, h5p


class OutputStream(io.FileIO):
    """
    A new file for HDF5 to write to, which never tells HDF5 that the disk is full.

    HDF5 holds on to what it could not write: it tries again when the file is closed and when the
    process ends, and dies there of a segmentation fault. So the stream remembers the first error
    and pretends from then on that all goes well, until HDF5 has closed the file.

    Made by `OutputStream.open`.
    """

    def __init__(self, path: Path, name: Path) -> None:
        super().__init__(path, "w+")
        self._path, self._name = path, name
        self._error: Optional[OSError] = None
        self._is_discarded = False

    @classmethod
    @contextmanager
    def open(cls, path: Path, name: Path) -> Iterator["OutputStream"]:
        """
        A stream for the block.

        # Parameters

        path : `Path`
            The file, which is made anew.
        name : `Path`
            What errors call it.

        # Raises

        OSError
            At the end of the block, if something could not be written.
        """
        stream = cls(path, name)
        try:
            yield stream
        finally:
            stream.close()
            stream.check()

    @contextmanager
    def hdf5_file(self) -> Iterator[h5py.File]:
        """
        An HDF5 file in the stream, for the block. Old versions of HDF5 read it. After an error the
        file is good for nothing.
        """
        access = h5p.create(h5p.FILE_ACCESS)
        # What is written is written at once, not when a data set is closed.
        access.set_sieve_buf_size(0)
        access.set_libver_bounds(h5f.LIBVER_EARLIEST, h5f.LIBVER_LATEST)
        access.set_fileobj_driver(h5fd.fileobj_driver, self)
        name = os.fsencode(self._path)
        file = h5py.File(h5f.create(name, h5f.ACC_TRUNC, fapl=access))
        try:
            yield file
        except BaseException:
            self._is_discarded = True
            raise
        finally:
            file.close()

    def check(self) -> None:
        """
        # Raises

        OSError
            If something could not be written.
        """
        if self._error is not None:
            raise self._error

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
            count = size if self._is_discarded else super().write(buffer)
            while count < size:
                count += super().write(buffer[count:])
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

    def _keep(self, error: OSError) -> None:
        """Remembers what went wrong first."""
        number = error.errno or errno.EIO
        self._error = self._error or OSError(number, os.strerror(number), str(self._name))
        self._is_discarded = True
