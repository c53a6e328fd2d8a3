"""Writing of configs to files, and overrides of what they hold."""

import functools
from difflib import get_close_matches
from os import fspath
from os.path import isdir
from typing import Any, Dict

from elmo_scratch_compat.whole_files import written_beside


def write_whole_files_and_name_unknown_keys(params: Any) -> None:
    """Patches the class of configs, and what overrides them."""
    write_whole_file(params)
    name_unknown_keys(params)
    refuse_folders(params)


def refuse_folders(params: Any) -> None:
    """Jsonnet ends the whole process, without a word of Python's, if a config is a folder."""
    original = params.evaluate_file

    @functools.wraps(original)
    def evaluate_file(path: str, *args: Any, **kwargs: Any) -> str:
        if isdir(path):
            raise params.ConfigurationError(f"{path}: expected a config, but it is a folder")
        return original(path, *args, **kwargs)

    params.evaluate_file = evaluate_file


def name_unknown_keys(params: Any) -> None:
    """
    AllenNLP refuses the override `{"trainr.num_epochs": 1}`, since the config has no `trainr`, as
    an "unused key", and doesn't say what the config has.
    """
    original = params.with_overrides

    @functools.wraps(original)
    def with_overrides(config: Any, overrides: Dict[str, Any], prefix: str = "") -> Any:
        if isinstance(config, (dict, list)):
            keys = [
                str(key) for key in (config if isinstance(config, dict) else range(len(config)))
            ]
            for override in overrides:
                begins = any(f"{override}.".startswith(f"{key}.") for key in keys)
                if not begins and ("." in override or isinstance(config, list)):
                    unknown = override.partition(".")[0]
                    nearest = get_close_matches(unknown, keys, n=1)
                    way_out = (
                        f"Did you mean {prefix}{nearest[0]}?"
                        if nearest
                        else f"It has {', '.join(prefix + key for key in keys)}."
                    )
                    raise ValueError(
                        f"overrides: {prefix}{override} can't be set: the config has no "
                        f"{prefix}{unknown}. {way_out}"
                    )
        return original(config, overrides, prefix)

    params.with_overrides = with_overrides


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
