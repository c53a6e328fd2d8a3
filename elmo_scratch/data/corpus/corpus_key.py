"""The name of a prepared corpus: a digest of its text and of all that decides how it is split."""

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
"""Of the files in the folder of a prepared corpus."""

DIGESTS = "digests"
"""The folder in which the digests of shards are remembered."""

_BYTES_AT_ONCE = 2**20
_DIGEST = r"[0-9a-f]{32}"
_SETTLED_AFTER = 2.0
"""Seconds after which a second change of a file surely shows in its time stamp."""

_PLAIN = (str, int, float, bool, type(None))


def corpus_key(
    shards: List[Path], tokenizer: Optional[Tokenizer], max_tokens: Optional[int], cache_dir: Path
) -> str:
    """
    # Parameters

    shards : `List[Path]`
        The files of the corpus. Their contents count and their order, not their names.
    tokenizer : `Tokenizer`, optional
        `None` splits at white space.
    max_tokens : `int`, optional
        Where sentences are cut.
    cache_dir : `Path`
        Remembers the digest of a file for as long as its size and time stamps stay.

    # Raises

    ConfigurationError
        If a shard can't be read, or the tokenizer's settings can't be told.
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
    # Returns

    `Dict[str, Any]`
        The name of a tokenizer's class, the code behind it, and the settings that tell it from
        others of its class: those of a `_to_params` of its own, or else its attributes; and what is
        in files and folders that these name. `None` for none.

    # Raises

    ConfigurationError
        If it has no `_to_params` of its own, and attributes that are more than numbers and texts;
        or a file that they name can't be read.
    """
    if tokenizer is None:
        return None
    kind = type(tokenizer)
    name = f"{kind.__module__}.{kind.__qualname__}"
    # One that is inherited doesn't know of what the class adds.
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
    What changes where a class splits in another way, as far as that can be told: the version of
    spaCy, or the digest of the file that a class of somebody else's is written in.
    """
    code = [f"spacy {version('spacy')}"] if "spacy" in kind.__name__.lower() else []
    if not _is_of(kind, "allennlp", "elmo_scratch"):
        with suppress(OSError, TypeError):  # it may have been made without a file
            code.append(_short_digest(inspect.getsource(inspect.getmodule(kind) or kind)))
    return " ".join(code) or None


def _is_of(kind: Type[Tokenizer], *packages: str) -> bool:
    """Whether a class is that of one of some packages."""
    return kind.__module__.partition(".")[0] in packages


def _files_of(plain: Any) -> Dict[str, str]:
    """The digests of the files that settings name, and of those in folders that they name."""
    if isinstance(plain, (dict, list)):
        parts = plain.values() if isinstance(plain, dict) else plain
        return {name: digest for part in parts for name, digest in _files_of(part).items()}
    path = Path(os.path.expanduser(plain)) if isinstance(plain, str) and plain else None
    try:
        files = sorted(path.iterdir()) if path is not None and path.is_dir() else [path]
        found = [file for file in files if file is not None and file.is_file()]
    except (OSError, ValueError):  # what no file can be called
        return {}
    return {str(file): _content_digest(file, lambda _: None) for file in found}


def _plain(value: Any) -> Any:
    """The same value in lists and dictionaries, if it is made of numbers and texts."""
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
    """The digests of the files' contents."""
    states = [_state_of(shard) for shard in shards]
    total = sum(state.st_size for state in states)
    # Shown only where files are new and large.
    with Tqdm.tqdm(
        total=total, desc="checking corpus", unit="B", unit_scale=True, delay=1
    ) as progress:
        return [
            _remembered_digest(shard, state, folder, progress.update)
            for shard, state in zip(shards, states)
        ]


def _state_of(shard: Path) -> os.stat_result:
    """What tells whether a file was written to."""
    try:
        return os.stat(shard)
    except OSError as error:
        raise ConfigurationError(f"{shard}: cannot be read ({error.strerror})") from None


def _remembered_digest(
    shard: Path, state: os.stat_result, folder: Path, done: Callable[[int], object]
) -> str:
    """The digest of a file's content, read only if the file isn't known by its time stamp."""
    identity = [os.path.realpath(shard), *_stamp(state)]
    memory = folder / _short_digest(json.dumps(identity))
    try:
        remembered = memory.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        remembered = ""
    # After a failure of power it may be an empty file, as that of another text.
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
    """What changes with the files, without reading them."""
    return [_stamp(os.stat(shard)) for shard in shards]


def _stamp(state: os.stat_result) -> Tuple[int, ...]:
    """The time of the last change too, which no program can set back."""
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_dev


def _content_digest(shard: Path, done: Callable[[int], object]) -> str:
    """The digest of all bytes of a file."""
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
