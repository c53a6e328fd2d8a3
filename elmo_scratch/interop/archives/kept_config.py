"""The configuration of a biLM that a training started from, kept in the training's own archive."""

from os import PathLike
from typing import Any, Dict, Optional, Union

from elmo_scratch.interop.archives.archived_json import keep_in_archive, kept_in_archive

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
