"""The files that settings of a training name."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterator

from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import CONFIG_NAME

from elmo_scratch.data.corpus.shards import list_shards
from elmo_scratch.interop.archives.archive import archive_files

WRITTEN = "keep_layers"
"""A setting that names a file which trainings themselves write to."""

DATA = "data_path"
"""Names of settings that may be patterns of files end with it."""


def named_files(settings: Any, name: str = "") -> Iterator[Path]:
    """
    Yields the files whose content decides what a training with these settings reads: those named,
    those that a pattern stands for, and of the output folder of a training, such as that of a
    biLM, what goes into its archive.

    # Parameters

    settings : `Any`
        A config, or a part of one.
    name : `str`, optional (default = `""`)
        The name of the part.
    """
    if isinstance(settings, dict):
        for key, setting in settings.items():
            if key.rpartition(".")[2] != WRITTEN:
                yield from named_files(setting, key)
    elif isinstance(settings, (list, tuple)):
        for setting in settings:
            yield from named_files(setting, name)
    elif isinstance(settings, str):
        with suppress(OSError, ValueError):  # what no file can be called
            yield from _files_of(settings, may_be_pattern=name.endswith(DATA))


def _files_of(name: str, may_be_pattern: bool) -> Iterator[Path]:
    """What a text names, if anything."""
    path = Path(os.path.expanduser(name))
    if path.is_file():
        yield path
    elif (path / CONFIG_NAME).is_file():
        yield from archive_files(path)
    elif may_be_pattern and "://" not in name:
        with suppress(ConfigurationError):  # each training says it
            yield from list_shards(name)
