"""Output files that appear whole or not at all."""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """
    Gives the block a temporary path beside `path`, and moves what the block wrote there to `path`
    when it ends without an error. Until then an older file at `path` stays as it is; after an
    error nothing is left of the new one.

    # Parameters

    path : `Path`
        Where the file shall appear. Its folder must exist.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
