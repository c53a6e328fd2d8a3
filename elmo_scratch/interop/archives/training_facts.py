"""What a training's output folder or archive tells of the training, for people to read."""

import json
from pathlib import Path
from typing import Any, Dict, NamedTuple

from elmo_scratch.interop.archives.sidecar import archived_path
from elmo_scratch_compat.bounds import FOLDER_CONFIG_SIZE


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
