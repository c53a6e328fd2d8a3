"""The folder that keeps what corpora were turned into."""

import os
from pathlib import Path

CACHE_VARIABLE = "ELMO_SCRATCH_CACHE"


def default_cache_dir() -> Path:
    """The default folder of prepared corpora."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser()
    return Path.home() / ".cache" / "elmo_scratch" / "corpora"
