"""What an unfinished training has kept, and the command that goes on with it."""

import re
import shlex
from pathlib import Path
from typing import Sequence

CHECKPOINT = re.compile(r"training_state_e(\d+)_b(\d+)\.th")
"""Matches the names of AllenNLP's files with the state of a training."""


def last_checkpoint(folder: Path) -> str:
    """
    What the last checkpoint in the output folder of a training holds, in words: `"1 epoch and 50
    batches"`; `""` if there is none.
    """
    names = (
        [CHECKPOINT.fullmatch(path.name) for path in folder.iterdir()] if folder.is_dir() else []
    )
    numbers = sorted((int(name[1]), int(name[2])) for name in names if name)
    if not numbers:
        return ""
    epochs, batches = numbers[-1]
    told = f"{epochs} epoch{'' if epochs == 1 else 's'}"
    return f"{told} and {batches} batches" if batches else told


def way_on(folder: Path, config_file: object, options: Sequence[str] = ()) -> str:
    """
    # Parameters

    folder : `Path`
        The output folder of a training that is not finished.
    config_file : `object`
        The path of its config.
    options : `Sequence[str]`, optional (default = none)
        The other words of its command line.

    # Returns

    `str`
        The command that goes on from the last checkpoint or, if there is none, begins anew.
    """
    how = "--recover" if last_checkpoint(folder) else "--force"
    return shlex.join(["allennlp", "train", str(config_file), "-s", str(folder), *options, how])
