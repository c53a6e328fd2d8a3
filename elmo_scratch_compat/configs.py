"""Writing of configs to files."""

import functools
from os import fspath
from typing import Any

from elmo_scratch_compat.whole_files import written_beside


def write_whole_file(params: Any) -> None:
    """
    Each start of a training, a recovery too, writes its `config.json` anew, and AllenNLP empties
    the file first: killed in that moment, or where the disk is full, a training could never be
    recovered again. Here the new file takes the place of the old one when it is whole.
    """
    original = params.Params.to_file

    @functools.wraps(original)
    def to_file(self: Any, params_file: Any, *arguments: Any, **settings: Any) -> None:
        with written_beside(fspath(params_file)) as part:
            original(self, part, *arguments, **settings)

    params.Params.to_file = to_file
