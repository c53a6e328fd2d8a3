"""JSON files that a training adds to its own archive."""

import json
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Optional, Union

from elmo_scratch.files.atomic import atomic_write


def archived_path(serialization_dir: Union[str, PathLike], name: str) -> Path:
    """
    Where AllenNLP packs it: it archives the whole folder `vocabulary`, and takes every file in it
    for a namespace, but for those whose names begin with a dot.

    # Parameters

    serialization_dir : `Union[str, PathLike]`
        The output folder of a training, or what was unpacked of its archive.
    name : `str`
        Tells what is kept from all else that is.
    """
    return Path(serialization_dir, "vocabulary", f".elmo_scratch{name}.json")


def keep_in_archive(serialization_dir: Union[str, PathLike], name: str, value: Any) -> None:
    """
    # Parameters

    serialization_dir, name
        As in `archived_path`.
    value : `Any`
        What is kept, in place of what was kept before by this name.
    """
    path = archived_path(serialization_dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2), encoding="utf-8")


def kept_in_archive(serialization_dir: Union[str, PathLike], name: str) -> Any:
    """
    # Parameters

    serialization_dir, name
        As in `archived_path`.

    # Returns

    `Any`
        What `keep_in_archive` kept; `None` if it kept nothing.
    """
    try:
        text = archived_path(serialization_dir, name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return json.loads(text)


NAME = "-start"


def keep_bilm_config(serialization_dir: Union[str, PathLike], config: Dict[str, Any]) -> None:
    """
    Puts a configuration where AllenNLP packs it into the archive of the training.

    # Parameters

    serialization_dir : `Union[str, PathLike]`
        The output folder of a training.
    config : `Dict[str, Any]`
        What the block `bilm` of a language model's config would be.
    """
    keep_in_archive(serialization_dir, NAME, config)


def kept_bilm_config(serialization_dir: Union[str, PathLike]) -> Optional[Dict[str, Any]]:
    """
    # Parameters

    serialization_dir : `Union[str, PathLike]`
        The output folder of a training, or what was unpacked of its archive.

    # Returns

    `Optional[Dict[str, Any]]`
        What `keep_bilm_config` kept, if it did.
    """
    kept: Optional[Dict[str, Any]] = kept_in_archive(serialization_dir, NAME)
    return kept
