"""
Finds the files of a corpus, and reads blocks of their lines.

Hugging Face data sets become such files: a column of their rows, from memory, disk, the Hub or a
stream. A data set is named by an address, `datasets:NAME?SETTING=VALUE&...`, or given as the object
itself, a `Dataset` or an `IterableDataset`. NAME is a folder of `save_to_disk`, or what
`load_dataset` takes. The settings are `column` (by default `text`), `split` (`train`), `streaming`
(`false`), and `name`, `revision`, `data_files` and `data_dir` as in `load_dataset`. No code of a
data set is run.
"""

import glob
import hashlib
import os
import re
import sys
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import lazy_groups_of

from elmo_scratch.data.lines import (
    BYTE_ORDER_MARK,
    ENDINGS,
    LOOKED_AT,
    check_no_archive,
    damage_told,
    ending_of,
    tell_rows,
    too_long,
    unpacked,
)
from elmo_scratch.files.paths import CACHE_VARIABLE, default_cache_dir, resolve_path
from elmo_scratch_compat.bounds import LINE_SIZE
from elmo_scratch_compat.unfinished import unfinished
from elmo_scratch_compat.whole_files import move

BLOCK_SIZE = 2**18
"""Bytes of text read at once: many lines that still fit into the processor's cache."""


def shard_blocks(shard: Path, on_read: Optional[Callable[[int], object]] = None) -> Iterator[str]:
    """
    Yields the text of a shard in blocks of whole lines. Each line ends with a line feed, whichever
    line end of `text_lines` the file has; the last line may lack it. A byte order mark at the
    beginning is dropped. An empty shard has no blocks.

    The shard is a text file, plain or compressed by one of `FORMS`. `on_read` is told after each
    block how many more bytes of the file on the disk were read.

    Raises `ConfigurationError` if the shard can't be read, is a damaged compressed file or an
    archive, or a line is not UTF-8 or longer than `LINE_SIZE` bytes.
    """
    try:
        file = open(shard, "rb")
    except OSError as error:
        raise ConfigurationError(f"{shard}: cannot be read ({error.strerror})") from None
    with file:
        text_file = unpacked(file)
        promised = ENDINGS.get(shard.suffix.lower())
        if text_file is file and promised is not None and file.peek(1):
            raise ConfigurationError(
                f"{shard}: expected a {promised} file, as its name says, but it doesn't begin like "
                "one. Rename it if it is plain text."
            )
        lines_before = 0
        reported = 0
        rest = b""
        while True:
            with damage_told(str(shard)):
                raw = rest + text_file.read(BLOCK_SIZE)
                end = text_file.readline(LINE_SIZE + 1)
            rest = b""
            if len(end) > LINE_SIZE:
                # Old line ends are carriage returns alone.
                cut = end.rfind(b"\r", 0, -1) + 1
                if cut == 0:
                    raise too_long(str(shard), lines_before + len((raw + end[:1]).splitlines()))
                rest, end = end[cut:], end[:cut]
            raw += end
            if not raw:
                break
            if lines_before == 0:
                check_no_archive(raw, str(shard))
            if b"\r" in raw:
                raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            text = _decoded(raw, shard, lines_before)
            if lines_before == 0:
                text = text.removeprefix(BYTE_ORDER_MARK)
                tell_rows(text.split("\n", LOOKED_AT)[:LOOKED_AT], str(shard))
            yield text
            lines_before += raw.count(b"\n")
            if on_read is not None:
                position = file.tell()
                on_read(position - reported)
                reported = position


def _decoded(raw: bytes, shard: Path, lines_before: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = lines_before + raw.count(b"\n", 0, error.start) + 1
        byte = error.start - raw.rfind(b"\n", 0, error.start)
        raise ConfigurationError(
            f"{shard}, line {line}: expected UTF-8 text, but byte {byte} of the line is "
            f"0x{raw[error.start]:02x}. Convert the file to UTF-8 first."
        ) from None


DataPath = Union[str, PathLike, Sequence[Union[str, PathLike]]]
"""A corpus: a path, a pattern or an address, or several of them."""

_NAMES_TO_SHOW = 3


def list_shards(data_path: DataPath) -> List[Path]:
    """
    Lists the files of a corpus.

    # Parameters

    data_path : `DataPath`
        A file, a pattern such as `corpus/*.txt.gz` (`**` stands for folders within folders), an
        address that AllenNLP's `cached_path` can fetch, a Hugging Face data set (see
        `data_set_lines`), which is written to a text file once, or a list of those.

    # Returns

    `List[Path]`
        The files in the order of the list, the matches of one pattern sorted by path, none twice.

    # Raises

    ConfigurationError
        If nothing is there, something can't be read or fetched, a path is a folder, or something
        that a pattern stands for is neither a file nor a folder.
    """
    patterns = named_paths(data_path)
    if not patterns:
        raise ConfigurationError("expected `data_path` to name a corpus, but the list is empty")
    shards: List[Path] = []
    known = set()
    for pattern in patterns:
        try:
            is_set = is_data_set(pattern)
            paths = [data_set_file(pattern)] if is_set else _matching(os.fspath(pattern))
        except OSError as error:
            name = error.filename or pattern
            raise ConfigurationError(f"{name}: cannot be read ({error.strerror})") from None
        for path in paths:
            real = os.path.realpath(path)
            if real not in known:
                known.add(real)
                shards.append(path)
    return shards


def named_paths(data_path: DataPath) -> List[Union[str, PathLike]]:
    """The paths, patterns and addresses that name a corpus, as given."""
    is_one = isinstance(data_path, (str, PathLike)) or is_data_set(data_path)
    return [data_path] if is_one else list(data_path)  # type: ignore[list-item, arg-type]


def is_table(path: Union[str, PathLike]) -> bool:
    """Whether a path or an address names a comma-separated table."""
    return not is_data_set(path) and ending_of(path) == ".csv"


def check_no_table(paths: Sequence[Union[str, PathLike]]) -> None:
    """Raises `ConfigurationError` for files whose lines are not sentences, by their names."""
    for path in paths:
        if is_table(path):
            raise ConfigurationError(
                f"{path}: a corpus is plain text, one sentence a line, but this is a table. "
                "AG News files are read without `elmo_scratch_stream` and `elmo_scratch_corpus`, "
                "as in training_config/bilm/ag_news.jsonnet; or write the texts to a file first."
            )


def first_names(shards: List[Path]) -> str:
    """The paths of the first three files, for a message, with a sign if there are more."""
    names = ", ".join(map(str, shards[:_NAMES_TO_SHOW]))
    return names + (", …" if len(shards) > _NAMES_TO_SHOW else "")


def check_not_empty(empty: List[Path]) -> None:
    """Raises `ConfigurationError` if the list of files without a token holds any."""
    if empty:
        raise ConfigurationError(
            f"{first_names(empty)}: expected sentences, but no line holds a token. Copy again what "
            "came incomplete, or leave it out of the files of the corpus; where it is empty by "
            "right, set `skip_empty_shards: true`, in the vocabulary and in the data loader "
            "`elmo_scratch_stream`, or with another loader in the dataset reader."
        )


def _matching(pattern: str) -> List[Path]:
    """The files that one path, pattern or address names."""
    if "://" in pattern:
        try:
            return [resolve_path(pattern)]
        except FileNotFoundError:
            raise ConfigurationError(f"{pattern}: there is no such file") from None
    expanded = os.path.expanduser(pattern)
    path = Path(expanded)
    if path.is_file():
        return [path]
    if path.is_dir():
        raise ConfigurationError(
            f"{pattern}: expected text files, but this is a folder. Name the files in it by a "
            f"pattern, such as {path / '*.txt'}"
        )
    if path.exists():
        raise ConfigurationError(
            f"{pattern}: expected a file that can be read more than once, but this is a pipe or a "
            "device. Write the text to a file first."
        )
    _check_folders(path if path.name == "**" else path.parent, pattern)
    files = [Path(name) for name in sorted(glob.glob(expanded, recursive=True))]
    for file in files:
        if not file.is_file() and not file.is_dir():
            raise ConfigurationError(
                f"{file}: expected a file, as {pattern} names it, but this is a link that leads "
                "nowhere, a pipe or a device. Bring back what it leads to, or remove it."
            )
    files = [file for file in files if file.is_file()]
    if not files:
        raise ConfigurationError(f"{pattern}: no file matches. {_what_there_is(path)}")
    return files


def _check_folders(folders: Path, pattern: str) -> None:
    """Checks that folders can be listed: `glob` skips those that can't."""
    while glob.has_magic(str(folders)):
        for folder in glob.iglob(os.path.join(folders, ""), recursive=True):
            try:
                os.scandir(folder).close()
            except OSError as error:
                raise ConfigurationError(
                    f"{folder}: it can't be told which files {pattern} names there "
                    f"({error.strerror}). Let it be read, or choose a pattern that leaves it out."
                ) from None
        folders = folders.parent


def _what_there_is(path: Path) -> str:
    """Describes the innermost existing folder of a path and its contents, for a message."""
    folder = path.absolute().parent
    while not folder.is_dir():
        folder = folder.parent
    try:
        names = sorted(os.listdir(folder))
    except PermissionError:
        return f"The folder {folder} may not be read."
    if not names:
        return f"The folder {folder} is empty."
    shown = ", ".join(names[:_NAMES_TO_SHOW])
    more = len(names) - _NAMES_TO_SHOW
    return f"The folder {folder} holds {shown}" + (f" and {more} more." if more > 0 else ".")


SCHEME = "datasets:"

SETTINGS = ("column", "data_dir", "data_files", "name", "revision", "split", "streaming")

ROWS_AT_ONCE = 1000

LINE_END = re.compile("\r\n|\r|\n")


def is_data_set(source: Any) -> bool:
    """Whether this is the address of a data set, or one itself."""
    if isinstance(source, str):
        return source.startswith(SCHEME)
    # Who has no data set hasn't imported the library, which takes seconds.
    library = sys.modules.get("datasets")
    return library is not None and isinstance(source, (library.Dataset, library.IterableDataset))


def data_set_lines(source: Any) -> Iterator[str]:
    """
    Yields each line of each row's text, as if the column were a text file. Streams are never held
    in memory or on the disk. Raises `ConfigurationError` if the data set can't be read, lacks the
    column, or a row holds no text.
    """
    yield from _opened(source).lines()


def data_set_file(source: Any) -> Path:
    """
    Returns a text file with all lines of a data set, one a line, in the folder of prepared corpora.
    A data set that is no stream is written there once. Errors are those of `data_set_lines`, or say
    that the folder can't be written to.
    """
    rows = _opened(source)
    folder = default_cache_dir() / "data_sets"
    path = folder / f"{rows.fingerprint}.txt"
    if rows.fingerprint is not None and path.exists():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with unfinished(str(folder / "lines.txt")) as part:
            digest = _write(rows.lines(), Path(part))
            if rows.fingerprint is None:
                # Only its content tells a stream from another.
                path = folder / f"{digest}.txt"
            # A file that others read keeps its time stamps.
            if not path.exists():
                move(part, path)
        return path
    except OSError as error:
        raise ConfigurationError(
            f"{folder}: cannot be written ({error.strerror}). Choose another folder by the "
            f"environment variable {CACHE_VARIABLE}."
        ) from None


class _Rows(NamedTuple):
    """
    A data set, the column of its texts, and its name in errors. `fingerprint` is the same for equal
    texts; a stream has none.
    """

    data_set: Any
    column: str
    name: str
    fingerprint: Optional[str]

    def lines(self) -> Iterator[str]:
        number = 0
        for texts in self._batches():
            for text in texts:
                number += 1
                if not isinstance(text, str):
                    raise ConfigurationError(
                        f"{self.name}, row {number}: expected text in the column {self.column!r}, "
                        f"but got {text!r}. Choose another column, or filter the rows."
                    )
                yield from LINE_END.split(text)

    def _batches(self) -> Iterator[Sequence[Any]]:
        """Yields the texts of some rows at a time."""
        columns = self.data_set.column_names
        # Some streams know their columns only when they are read.
        if columns is not None and self.column in columns:
            batches = self.data_set.select_columns([self.column]).iter(ROWS_AT_ONCE)
        else:
            batches = self.data_set.iter(ROWS_AT_ONCE)
        with _library_errors(self.name):
            for batch in batches:
                if self.column not in batch:
                    raise ConfigurationError(
                        f"{self.name}: expected a column {self.column!r}, but there are "
                        f"{', '.join(map(repr, batch))}. Name one by `column=`."
                    )
                yield batch[self.column]


def _opened(source: Any) -> _Rows:
    if not isinstance(source, str):
        return _Rows(source, "text", "the data set", _fingerprint(source, "text"))
    name, _, query = source.removeprefix(SCHEME).partition("?")
    pairs = [pair.partition("=") for pair in query.split("&")] if query else []
    # Not decoded as in the Web's addresses: splits have signs such as + and %.
    settings = {key: value for key, _, value in pairs}
    unknown = sorted({*settings} - {*SETTINGS})
    if not name or unknown or settings.get("streaming", "true") not in ("true", "false"):
        raise ConfigurationError(
            f"{source}: expected datasets:NAME?SETTING=VALUE&..., with settings among "
            f"{', '.join(SETTINGS)}, and `streaming` true or false"
        )
    column = settings.pop("column", "text")
    with _library_errors(source):
        data_set = _load(name, settings)
    return _Rows(data_set, column, source, _fingerprint(data_set, column))


def _load(name: str, settings: Dict[str, str]) -> Any:
    import datasets  # It takes seconds.

    folder = Path(name).expanduser()
    is_streaming = settings.pop("streaming", "false") == "true"
    split = settings.pop("split", "train")
    if (folder / "state.json").is_file():
        loaded = datasets.load_from_disk(str(folder))
    elif (folder / "dataset_dict.json").is_file():
        loaded = datasets.load_from_disk(str(folder / split))
    else:
        return datasets.load_dataset(
            name, split=split, streaming=is_streaming, trust_remote_code=False, **settings
        )
    return loaded.to_iterable_dataset() if is_streaming else loaded


def _fingerprint(data_set: Any, column: str) -> Optional[str]:
    """A name for the texts of a data set that is no stream."""
    of_all = getattr(data_set, "_fingerprint", None)
    if of_all is None:
        return None
    return hashlib.sha256(f"{of_all} {column}".encode("utf-8")).hexdigest()[:32]


@contextmanager
def _library_errors(name: str) -> Iterator[None]:
    """Raises `ConfigurationError` for any error of the library: each kind of source has its own."""
    try:
        yield
    except ConfigurationError:
        raise
    except ImportError:
        raise ConfigurationError(
            f"{name}: data sets need the package datasets: pip install datasets"
        ) from None
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"{name}: the data set can't be read: {reason}") from None


def _write(lines: Iterator[str], path: Path) -> str:
    """Writes lines to a file, and returns a digest of its bytes."""
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        for group in lazy_groups_of(lines, ROWS_AT_ONCE):
            content = "".join(f"{line}\n" for line in group).encode("utf-8")
            digest.update(content)
            file.write(content)
    return digest.hexdigest()[:32]
