"""
Hugging Face data sets as text: a column of their rows, from memory, disk, the Hub or a stream.

A data set is named by an address, `datasets:NAME?SETTING=VALUE&...`, or given as the object itself,
a `Dataset` or an `IterableDataset`. NAME is a folder of `save_to_disk`, or what `load_dataset`
takes. The settings are `column` (by default `text`), `split` (`train`), `streaming` (`false`), and
`name`, `revision`, `data_files` and `data_dir` as in `load_dataset`. No code of a data set is run.
"""

import hashlib
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple, Optional, Sequence

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import lazy_groups_of

from elmo_scratch.files.paths import CACHE_VARIABLE, default_cache_dir
from elmo_scratch_compat.unfinished import unfinished
from elmo_scratch_compat.whole_files import move

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
