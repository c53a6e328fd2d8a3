"""Tells files apart by what is in them."""

import hashlib
from pathlib import Path
from typing import Sequence

READ_AT_ONCE = 2**20
"""Bytes."""


def identity_of(files: Sequence[Path]) -> str:
    """
    # Parameters

    files : `Sequence[Path]`
        One file, or several that belong together, in an order that has a meaning.

    # Returns

    `str`
        `"sha256:"` and the SHA-256 of the file's bytes; of several files, that of all their
        SHA-256 one after the other.
    """
    digests = [_digest(file) for file in files]
    if len(digests) == 1:
        return f"sha256:{digests[0].hex()}"
    return f"sha256:{hashlib.sha256(b''.join(digests)).hexdigest()}"


def _digest(file: Path) -> bytes:
    """The SHA-256 of a file of any size."""
    digest = hashlib.sha256()
    with open(file, "rb") as opened:
        while block := opened.read(READ_AT_ONCE):
            digest.update(block)
    return digest.digest()
