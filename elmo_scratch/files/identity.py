"""Tells files apart by their contents or, without reading them, by their stamps."""

import hashlib
import os
from functools import cached_property
from pathlib import Path
from typing import Sequence, Tuple

from allennlp.common.checks import ConfigurationError

READ_AT_ONCE = 2**20
"""Bytes read at once."""

Stamp = Tuple[int, int, int, int]


def stamp_of(file: Path) -> Stamp:
    """
    A stamp that changes with the content of a file, known without reading it: its device, its
    inode, its size, and the time of its last write. Two contents of one size written within a tick
    of the system's clock look the same. Raises `OSError` if there is no such file.
    """
    found = os.stat(file)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class ReadFiles:
    """
    Files that are about to be read: one, or several that belong together, in a meaningful order.
    Their identity is computed later, only if it is asked for. Of files that hold several things
    `part` tells which is read.
    """

    def __init__(self, files: Sequence[Path], part: str = "") -> None:
        # An absolute path stays right when the process changes its folder.
        self.paths = [file.absolute() for file in files]
        """Where they lie, in their order."""
        self._part = part
        self._stamps = [stamp_of(file) for file in self.paths]

    @cached_property
    def identity(self) -> str:
        """
        The result of `identity_of`; of a part, the SHA-256 of that and its name. Raises
        `ConfigurationError` if the files changed since they were read.
        """
        try:
            identity = identity_of(self.paths)
            is_same = self._stamps == [stamp_of(file) for file in self.paths]
        except OSError:
            is_same = False
        if not is_same:
            names = ", ".join(map(str, self.paths))
            raise ConfigurationError(
                f"{names}: changed or removed since the biLM was read. Load it again."
            )
        if self._part:
            both = f"{identity} {self._part}".encode("utf-8", "surrogateescape")
            return f"sha256:{hashlib.sha256(both).hexdigest()}"
        return identity

    def hold(self, path: Path) -> bool:
        """Whether one of the files is the file at `path`, by whatever name."""
        return path.exists() and any(file.exists() and path.samefile(file) for file in self.paths)


def identity_of(files: Sequence[Path]) -> str:
    """
    `"sha256:"` and the SHA-256 of a file's bytes; for several files, the SHA-256 of all their
    SHA-256 digests end to end.
    """
    digests = []
    for file in files:
        digest = hashlib.sha256()
        with open(file, "rb") as opened:
            while block := opened.read(READ_AT_ONCE):
                digest.update(block)
        digests.append(digest)
    if len(digests) != 1:
        digest = hashlib.sha256(b"".join(digest.digest() for digest in digests))
    return f"sha256:{digest.hexdigest()}"
