"""The configuration of a biLM that a training started from, kept in the training's own archive."""

import json
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Optional, Union

from elmo_scratch.whole_file import whole_file

# AllenNLP archives the whole folder `vocabulary` and takes every file in it for a namespace, but
# for those whose names begin with a dot.
KEPT_NAME = ".elmo_scratch-start.json"


def keep_bilm_config(serialization_dir: Union[str, PathLike], config: Dict[str, Any]) -> None:
    """
    Puts a configuration where AllenNLP packs it into the archive of the training.

    # Parameters

    serialization_dir : `Union[str, PathLike]`
        The output folder of a training.
    config : `Dict[str, Any]`
        What the block `bilm` of a language model's config would be.
    """
    path = Path(serialization_dir, "vocabulary", KEPT_NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(config, indent=2), encoding="utf-8")


def kept_bilm_config(serialization_dir: Union[str, PathLike]) -> Optional[Dict[str, Any]]:
    """
    # Parameters

    serialization_dir : `Union[str, PathLike]`
        The output folder of a training, or what was unpacked of its archive.

    # Returns

    `Optional[Dict[str, Any]]`
        What `keep_bilm_config` kept, if it did.
    """
    path = Path(serialization_dir, "vocabulary", KEPT_NAME)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
