"""The sizes of the official biLMs of a task, kept in the task's own archive."""

import json
from os import PathLike
from pathlib import Path
from typing import Dict, Optional, Union

from elmo_scratch.interop.whole_file import whole_file
from elmo_scratch.options import Options

BLUEPRINT_NAME = ".elmo_scratch_official.json"
"""AllenNLP archives the whole folder `vocabulary` and takes every file in it for a namespace, but
for those whose names begin with a dot."""


def keep_options(
    serialization_dir: Union[str, PathLike], options_file: str, options: Options
) -> None:
    """
    Puts options where AllenNLP packs them into the archive of the training.

    # Parameters

    serialization_dir : `Union[str, PathLike]`
        The output folder of a training.
    options_file : `str`
        The file that they came from, by which they are found again.
    options : `Options`
        Its content.
    """
    path = _path(serialization_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = _read(path)
    kept[options_file] = options.to_json()
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(kept, indent=2), encoding="utf-8")


def kept_options(
    serialization_dir: Optional[Union[str, PathLike]], options_file: str
) -> Optional[Options]:
    """
    # Parameters

    serialization_dir : `Optional[Union[str, PathLike]]`
        The output folder of a training, or what was unpacked of its archive.
    options_file : `str`
        The file that the options came from.

    # Returns

    `Optional[Options]`
        What `keep_options` kept, if it did.
    """
    if serialization_dir is None:
        return None
    path = _path(serialization_dir)
    text = _read(path).get(options_file)
    return None if text is None else Options.from_json(text, str(path))


def _path(serialization_dir: Union[str, PathLike]) -> Path:
    return Path(serialization_dir, "vocabulary", BLUEPRINT_NAME)


def _read(path: Path) -> Dict[str, str]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
