"""JSON files that a training adds to its own archive, and all that its records tell."""

import json
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple, Optional, Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.atomic import atomic_write
from elmo_scratch_compat.bounds import FOLDER_CONFIG_SIZE


def archived_path(serialization_dir: Union[str, PathLike], name: str) -> Path:
    """
    The path of a JSON file that AllenNLP packs into the archive: it archives the whole folder
    `vocabulary` of a training's output, and takes every file there for a namespace unless the name
    begins with a dot. `name` tells several such files apart.
    """
    return Path(serialization_dir, "vocabulary", f".elmo_scratch{name}.json")


def keep_in_archive(serialization_dir: Union[str, PathLike], name: str, value: Any) -> None:
    """Stores a JSON value at `archived_path`, in place of an older one."""
    path = archived_path(serialization_dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2), encoding="utf-8")


def kept_in_archive(serialization_dir: Union[str, PathLike], name: str) -> Any:
    """
    Reads the value that `keep_in_archive` stored; `None` if there is none. Raises
    `ConfigurationError` if it is no JSON.
    """
    with reading_kept(serialization_dir, name):
        try:
            return json.loads(archived_path(serialization_dir, name).read_bytes())
        except FileNotFoundError:
            return None


@contextmanager
def reading_kept(serialization_dir: Union[str, PathLike], name: str) -> Iterator[None]:
    """A context in which a kept value without the right form is one `ConfigurationError`."""
    try:
        yield
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{archived_path(serialization_dir, name)}: expected what a training keeps of its biLM "
            f"in its archive, but it can't be read: {error!r}. Is the archive whole?"
        ) from None


NAME, SOFTMAX_NAME = "-start", "-softmax"


def keep_bilm_config(serialization_dir: Union[str, PathLike], config: Dict[str, Any]) -> None:
    """Stores the `bilm` block of a language model's config for the archive of the training."""
    keep_in_archive(serialization_dir, NAME, config)


def kept_bilm_config(serialization_dir: Union[str, PathLike]) -> Optional[Dict[str, Any]]:
    """Reads the config that `keep_bilm_config` stored; `None` if there is none."""
    kept: Optional[Dict[str, Any]] = kept_in_archive(serialization_dir, NAME)
    return kept


def keep_softmax_config(serialization_dir: Union[str, PathLike], config: Dict[str, Any]) -> None:
    """Stores the block `softmax` that a training took over from the archive it started from."""
    keep_in_archive(serialization_dir, SOFTMAX_NAME, config)


def kept_softmax_config(serialization_dir: Union[str, PathLike]) -> Optional[Dict[str, Any]]:
    """Reads what `keep_softmax_config` stored; `None` if there is none."""
    with reading_kept(serialization_dir, SOFTMAX_NAME):
        kept: Optional[Dict[str, Any]] = kept_in_archive(serialization_dir, SOFTMAX_NAME)
        if kept is not None and not isinstance(kept, dict):
            raise TypeError(f"expected an object, but got {kept!r}")
    return kept


class TrainingFacts(NamedTuple):
    """
    The records of a training, each empty where it is missing.

    # Parameters

    config : `Dict[str, Any]`
        Its `config.json`.
    metrics : `Dict[str, Any]`
        Its `metrics.json`.
    audit : `Dict[str, Any]`
        The figures of its corpus, of `CorpusAudit`.
    environment : `Dict[str, Any]`
        Its `environment.json`: versions and the machine.
    """

    config: Dict[str, Any] = {}
    metrics: Dict[str, Any] = {}
    audit: Dict[str, Any] = {}
    environment: Dict[str, Any] = {}

    @classmethod
    def of(cls, unpacked: Path, beside: Path) -> "TrainingFacts":
        """
        Reads the records in an unpacked archive and, where the archive holds none of a kind, in
        the folder `beside` that it lies in.
        """
        return cls(
            _record(unpacked / "config.json"),
            _record(unpacked / "metrics.json") or _record(beside / "metrics.json"),
            _record(archived_path(unpacked, "-audit")),
            _record(unpacked / "environment.json") or _record(beside / "environment.json"),
        )


NO_FACTS = TrainingFacts()


def _record(path: Path) -> Dict[str, Any]:
    """Reads a JSON object; returns an empty one if there is none."""
    try:
        if path.stat().st_size > FOLDER_CONFIG_SIZE:
            return {}
        record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
