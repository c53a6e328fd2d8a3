"""
Finds a file that is named by a path or an address, and the folder of the cache. What HTTP fetches
is there whole or not at all, and an interrupted download goes on.
"""

import os
import time
from os import PathLike
from pathlib import Path
from typing import Callable, Dict, Optional, Union

import requests
from allennlp.common import file_utils
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.common.tqdm import Tqdm
from cached_path.meta import Meta
from cached_path.util import find_latest_cached, resource_to_filename
from filelock import FileLock

from elmo_scratch_compat.whole_files import move

CACHE_VARIABLE = "ELMO_SCRATCH_CACHE"
"""The environment variable that names the cache, `~/.cache/elmo_scratch` by default."""


def is_address(source: Union[str, PathLike]) -> bool:
    """Whether it is no path, but the address of a file somewhere else."""
    return "://" in str(source)


def resolve_path(source: Union[str, PathLike]) -> Path:
    """
    The local path of a path, of an address of HTTP, or of another that AllenNLP's `cached_path` can
    fetch. Local files are used where they lie: `cached_path` would make its cache for them too,
    which fails if the home folder is missing or can't be written to.

    Raises `FileNotFoundError` if there is no file or folder of this name, `ConfigurationError` if
    an address can't be fetched or the system refuses a path.
    """
    if is_address(source):
        fetch = fetched if str(source).startswith(("http://", "https://")) else cached_path
        try:
            return Path(fetch(str(source)))
        except (FileNotFoundError, ConfigurationError):
            raise
        # Each kind of address has errors of its own, from libraries that may be missing.
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ConfigurationError(f"{source}: it can't be fetched: {reason}") from None
    path = Path(os.path.expanduser(source))
    try:
        is_there = path.exists()
    except OSError as error:
        raise ConfigurationError(f"{source}: cannot be read ({error.strerror})") from None
    if not is_there:
        raise FileNotFoundError(f"{source}: there is no such file")
    return path


def local_file(source: Union[str, PathLike]) -> Path:
    """
    The local path of a file, fetched if it is an address. Raises `ConfigurationError` if it is
    missing, is a folder, may not be read or can't be fetched.
    """
    try:
        path = resolve_path(source)
    except FileNotFoundError:
        raise ConfigurationError(f"{source}: there is no such file") from None
    if path.is_dir():
        raise ConfigurationError(f"{source}: expected a file, but it is a folder")
    if not os.access(path, os.R_OK):
        raise ConfigurationError(f"{source}: cannot be read (permission denied)")
    return path


def cache_dir() -> Path:
    """The folder that keeps what was fetched or unpacked."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).expanduser() if named else Path.home() / ".cache" / "elmo_scratch"


def default_cache_dir() -> Path:
    """The default folder of prepared corpora."""
    return cache_dir() if os.environ.get(CACHE_VARIABLE) else cache_dir() / "corpora"


TIMEOUT = (4, 30)
"""Seconds to wait for a connection, and for a server that has been silent since."""

TRIES, PAUSE = 5, 1.0
"""How often a connection may break off within one download, and the seconds before the next try."""

BLOCK = 2**16
"""Bytes written at once. A connection that breaks off loses less than these."""

WHOLE, PARTIAL_CONTENT, NOT_FOUND, RANGE_NOT_SATISFIABLE = 200, 206, 404, 416
"""What a server answers."""


class FetchError(ConfigurationError):
    """
    An address from which a file can't be fetched.

    # Parameters

    address : `str`
        The address.
    reason : `str`
        Why, in words.
    """

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: it can't be fetched: {reason}")
        self.reason = reason


def fetched(address: str) -> Path:
    """
    The copy of an address's file in AllenNLP's cache, under the name that AllenNLP gives it there,
    so that what AllenNLP has fetched is not fetched again. Without a connection it is the newest
    copy there is. Raises `FetchError` if there is none either, `FileNotFoundError` if the server
    has no such file.
    """
    cache = Path(file_utils.CACHE_DIRECTORY)
    try:
        with requests.head(address, allow_redirects=True, timeout=TIMEOUT) as answer:
            status, etag = answer.status_code, answer.headers.get("ETag")
            reason = f"the server answers {status} {answer.reason}"
    except requests.RequestException as error:
        status, etag, reason = None, None, reason_of(error)
    if status == NOT_FOUND:
        raise FileNotFoundError(f"{address}: there is no such file")
    if status is None or status >= 400:
        kept = find_latest_cached(address, cache)
        if kept is None:
            raise FetchError(address, reason)
        return kept
    target = cache / resource_to_filename(address, etag)
    if not target.exists():
        download(address, target)
        Meta.new(address, target, etag=etag).to_file()
    return target


def download(
    address: str,
    target: Path,
    *,
    size: Optional[int] = None,
    flaw_of: Callable[[Path], str] = lambda _: "",
) -> None:
    """
    Fetches a file, once for all processes that want it. What an interrupted download has left goes
    on where the server can tell that its file is still the same, and starts anew elsewhere.

    # Parameters

    address : `str`
        Of HTTP or HTTPS.
    target : `Path`
        Where the file appears when it is whole. A file that is there is left alone.
    size : `int`, optional (default = `None`)
        The bytes that the file must have. No more than these are received.
    flaw_of : `Callable[[Path], str]`, optional
        Tells what is wrong with a file that was fetched, and `""` if nothing is.

    # Raises

    FetchError
        If the file can't be fetched, or is not what it should be.
    ConfigurationError
        If it can't be written.
    """
    partial = target.with_name(f".{target.name}.incomplete")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_name(f".{target.name}.lock")):
            if target.exists():
                return
            _receive(address, partial, size)
            _version_file(partial).unlink(missing_ok=True)
            flaw = flaw_of(partial)
            if flaw:
                partial.unlink()
                raise FetchError(address, flaw)
            move(partial, target)
    except OSError as error:
        # The lock and what is there of the file are nobody's business.
        is_above = error.filename and target.is_relative_to(error.filename)
        named = error.filename if is_above else target
        raise ConfigurationError(
            f"{named}: cannot be written ({error.strerror}); what is fetched "
            f"is kept in {target.parent}"
        ) from None


def _receive(address: str, partial: Path, size: Optional[int]) -> None:
    """Fetches what `partial` lacks, and tries again as long as each try brings something."""
    for tries_left in reversed(range(TRIES)):
        before = _length(partial)
        try:
            _receive_once(address, partial, size)
            return
        except requests.RequestException as error:
            kept = _length(partial)
            if kept <= before or not tries_left:
                reason = reason_of(error)
                if kept and _version_file(partial).exists():
                    reason += f" ({kept:,} bytes are kept: the next try goes on from there)"
                raise FetchError(address, reason) from None
        time.sleep(PAUSE)


def _receive_once(address: str, partial: Path, size: Optional[int]) -> None:
    version_file = _version_file(partial)
    # Compressed on its way, a file could neither be counted nor continued.
    headers: Dict[str, str] = {"Accept-Encoding": "identity"}
    start = _length(partial) if version_file.exists() else 0
    if start:
        headers["Range"] = f"bytes={start}-"
        headers["If-Range"] = version_file.read_text("latin-1")
    with requests.get(address, headers=headers, stream=True, timeout=TIMEOUT) as answer:
        status = answer.status_code
        is_rest = start > 0 and status == PARTIAL_CONTENT
        is_other = not answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        if start and (status == RANGE_NOT_SATISFIABLE or (is_rest and is_other)):
            # There is more here than the file has, or another part was sent.
            version_file.unlink()
            return _receive_once(address, partial, size)
        if not is_rest:
            if status != WHOLE:
                raise FetchError(address, f"the server answers {status} {answer.reason}")
            start = 0
            partial.unlink(missing_ok=True)
            _write_version(version_file, answer)
        length = answer.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else None
        if size is not None and total is not None and total != size:
            raise FetchError(address, f"it has {total} bytes, but {size} were expected")
        name = address.rpartition("/")[2]
        with (
            partial.open("ab") as file,
            Tqdm.tqdm(
                desc=f"fetching {name}",
                total=total,
                initial=start,
                unit="B",
                unit_scale=True,
                delay=1,
            ) as progress,
        ):
            for block in answer.iter_content(BLOCK):
                file.write(block)
                progress.update(len(block))
                if size is not None and file.tell() > size:
                    raise FetchError(address, f"it has more than {size} bytes, as were expected")
    if total is not None and _length(partial) < total:
        raise requests.exceptions.ChunkedEncodingError


def _version_file(partial: Path) -> Path:
    """Holds what tells by HTTP whether the server's file is the one that `partial` began with."""
    return partial.with_name(f"{partial.name}.version")


def _write_version(version_file: Path, answer: requests.Response) -> None:
    """Without a version that stands for equal bytes, a download can't go on."""
    etag = answer.headers.get("ETag", "W/")
    version = answer.headers.get("Last-Modified", "") if etag.startswith("W/") else etag
    version_file.unlink(missing_ok=True)
    if version:
        version_file.write_text(version, "latin-1")


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def reason_of(error: requests.RequestException) -> str:
    """What the system said, which `requests` wraps into several other errors; in a line."""
    if isinstance(error, requests.Timeout):
        return "there was no answer in time"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection broke off"
    named = "the proxy: " if isinstance(error, requests.exceptions.ProxyError) else ""
    inner: Optional[BaseException] = error
    while inner is not None:
        said = getattr(inner, "strerror", None)
        if said:
            return f"{named}{said}"
        within = getattr(inner, "reason", None) or (inner.args[0] if inner.args else None)
        inner = within if isinstance(within, BaseException) else inner.__cause__
    return named + " ".join(str(error).split())
