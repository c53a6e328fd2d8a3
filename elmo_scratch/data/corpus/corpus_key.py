"""Names a prepared corpus by a digest of its text and of all that decides how it is split."""

import hashlib
import inspect
import json
import logging
import os
import re
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple, Type

from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from allennlp.data.tokenizers import Tokenizer

from elmo_scratch.files.atomic import atomic_write

logger = logging.getLogger(__name__)

FORMAT_VERSION = 2
"""The version of the files in the folder of a prepared corpus."""

DIGESTS = "digests"
"""The folder that caches the digests of shards."""

_BYTES_AT_ONCE = 2**20
_DIGEST = r"[0-9a-f]{32}"
_SETTLED_AFTER = 2.0
"""Seconds after which a second change of a file surely shows in its time stamp."""

_PLAIN = (str, int, float, bool, type(None))


def corpus_key(
    shards: List[Path], tokenizer: Optional[Tokenizer], max_tokens: Optional[int], cache_dir: Path
) -> str:
    """
    A digest of the contents and the order of the shards (not their names), the tokenizer and
    `max_tokens`. `cache_dir` caches the digest of a file as long as its size and time stamps stay.
    Raises `ConfigurationError` if a shard can't be read, or a tokenizer's settings can't be told.
    """
    settings = {
        "format": FORMAT_VERSION,
        "tokenizer": tokenizer_settings(tokenizer),
        "max_tokens": max_tokens,
        "shards": _digests(shards, cache_dir / DIGESTS),
    }
    return _short_digest(json.dumps(settings, sort_keys=True))


def tokenizer_settings(tokenizer: Optional[Tokenizer]) -> Optional[Dict[str, Any]]:
    """
    The settings that tell a tokenizer from others: the name of its class, the code behind it, the
    result of its own `_to_params` (its attributes if it has none), and the contents of the files
    and folders that these name. `None` for no tokenizer.

    Raises `ConfigurationError` if it has no `_to_params` of its own but attributes that are more
    than numbers and texts, or if a named file can't be read.
    """
    if tokenizer is None:
        return None
    kind = type(tokenizer)
    name = f"{kind.__module__}.{kind.__qualname__}"
    # An inherited `_to_params` doesn't know what the class adds.
    has_params = "_to_params" in vars(kind)
    settings = tokenizer.to_params().as_dict(quiet=True) if has_params else vars(tokenizer)
    try:
        plain = _plain(settings)
        told = {"class": name, "code": _code_of(kind), "settings": plain}
        files = {} if _is_of(kind, "elmo_scratch") else _files_of(plain)
        return {**told, "files": files} if files else told
    except TypeError as error:
        raise ConfigurationError(
            f"a corpus can't be prepared with the tokenizer {name}: {error}, so that it can't be "
            "told from others with other settings. Give the class a method `_to_params`, as "
            "AllenNLP's own tokenizers have."
        ) from None


def _code_of(kind: Type[Tokenizer]) -> Optional[str]:
    """
    The version of a tokenizer's code, as far as it can be told: the version of spaCy, or the digest
    of the source file of a class from outside AllenNLP and this package.
    """
    code = [f"spacy {version('spacy')}"] if "spacy" in kind.__name__.lower() else []
    if not _is_of(kind, "allennlp", "elmo_scratch"):
        with suppress(OSError, TypeError):  # a class may have been made without a file
            code.append(_short_digest(inspect.getsource(inspect.getmodule(kind) or kind)))
    return " ".join(code) or None


def _is_of(kind: Type[Tokenizer], *packages: str) -> bool:
    """Whether a class belongs to one of the packages."""
    return kind.__module__.partition(".")[0] in packages


def _files_of(plain: Any) -> Dict[str, str]:
    """The digests of the files that settings name, and of the files in folders that they name."""
    if isinstance(plain, (dict, list)):
        parts = plain.values() if isinstance(plain, dict) else plain
        return {name: digest for part in parts for name, digest in _files_of(part).items()}
    path = Path(os.path.expanduser(plain)) if isinstance(plain, str) and plain else None
    try:
        files = sorted(path.iterdir()) if path is not None and path.is_dir() else [path]
        found = [file for file in files if file is not None and file.is_file()]
    except (OSError, ValueError):  # the text can't be the name of a file
        return {}
    return {str(file): _content_digest(file, lambda _: None) for file in found}


def _plain(value: Any) -> Any:
    """The value as lists and dictionaries; `TypeError` unless it is made of numbers and texts."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(json.dumps(_plain(item), sort_keys=True) for item in value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    raise TypeError(f"it holds a {type(value).__name__}")


def _digests(shards: List[Path], folder: Path) -> List[str]:
    states = [_state_of(shard) for shard in shards]
    total = sum(state.st_size for state in states)
    # The bar appears only if files are new and large.
    with Tqdm.tqdm(
        total=total, desc="checking corpus", unit="B", unit_scale=True, delay=1
    ) as progress:
        return [
            _remembered_digest(shard, state, folder, progress.update)
            for shard, state in zip(shards, states)
        ]


def _state_of(shard: Path) -> os.stat_result:
    """The file's `os.stat`, which tells whether it was written to."""
    try:
        return os.stat(shard)
    except OSError as error:
        raise ConfigurationError(f"{shard}: cannot be read ({error.strerror})") from None


def _remembered_digest(
    shard: Path, state: os.stat_result, folder: Path, done: Callable[[int], object]
) -> str:
    """The digest of a file's content, cached by its path and time stamps."""
    identity = [os.path.realpath(shard), *_stamp(state)]
    memory = folder / _short_digest(json.dumps(identity))
    try:
        remembered = memory.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        remembered = ""
    # After a power failure the cached file may be empty, which must not pass for a digest.
    if re.fullmatch(_DIGEST, remembered):
        done(state.st_size)
        return remembered
    digest = _content_digest(shard, done)
    if time.time() - state.st_mtime < _SETTLED_AFTER:
        return digest
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(memory) as temporary:
            temporary.write_text(digest, "ascii")
    except OSError as error:
        logger.info("The digest of %s is not remembered: %s", shard, error)
    return digest


def shard_stamps(shards: List[Path]) -> List[Tuple[int, ...]]:
    """Stamps that change with the files, without reading them."""
    return [_stamp(os.stat(shard)) for shard in shards]


def _stamp(state: os.stat_result) -> Tuple[int, ...]:
    """
    The size, times and identity of a file. No program can set back the time of the last change.
    """
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_dev


def _content_digest(shard: Path, done: Callable[[int], object]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    try:
        with open(shard, "rb") as file:
            while block := file.read(_BYTES_AT_ONCE):
                digest.update(block)
                done(len(block))
    except OSError as error:
        raise ConfigurationError(f"{shard}: cannot be read ({error.strerror})") from None
    return digest.hexdigest()


def _short_digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
