"""
Reads a corpus of any size from disk. It is kept under a digest of its text and of all that decides
how it is split.
"""

import errno
import hashlib
import inspect
import json
import logging
import mmap
import os
import re
import shutil
import time
import zlib
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Type

import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from allennlp.data import Vocabulary
from allennlp.data.tokenizers import Tokenizer, WhitespaceTokenizer
from filelock import FileLock, Timeout

from elmo_scratch.data.corpus.preparation import (
    AUDIT,
    SENTENCE_STARTS,
    SHARD_STARTS,
    START_TYPE,
    TOKEN_TYPE,
    TOKENS,
    CorpusAudit,
    WordTable,
    prepare_corpus,
)
from elmo_scratch.data.corpus.shards import (
    DataPath,
    check_no_table,
    check_not_empty,
    first_names,
    list_shards,
    named_paths,
)
from elmo_scratch.data.lines import check_max_tokens
from elmo_scratch.data.vocabulary_file import MARKS
from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.files.identity import READ_AT_ONCE, Stamp, stamp_of
from elmo_scratch.files.paths import default_cache_dir
from elmo_scratch_compat.whole_files import move

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


MANIFEST = "manifest.json"
"""The size of each file of the folder, written last."""

CHECKSUMS = "checksums.json"
"""The CRC-32 of each file of the folder but the manifest. Folders of 0.2.0 have none."""

PART = ".elmo_scratch_part"
"""
The suffix of a folder while it is made; other folders with this suffix are leftovers to remove.
"""

_FULL = (errno.ENOSPC, errno.EDQUOT)


def make_once(folder: Path, write: Callable[[Path], None]) -> None:
    """
    Makes sure that a folder is there, whole. One process makes it beside its place and then moves
    it there; others wait. Half-made folders of killed processes, here and beside, are removed, and
    a folder in which a file is missing or is no longer what it was is made anew, with a warning.

    `write` writes the files into an empty folder; an error there leaves nothing behind. Raises
    `ConfigurationError` if the disk is full or the place can't be written to.
    """
    if is_whole(folder):
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(_lock_path(folder))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            logger.info("Waiting for another process that prepares %s", folder)
            lock.acquire()
        try:
            if not is_whole(folder):
                _make(folder, write)
        finally:
            lock.release()
    except OSError as error:
        if error.errno in _FULL:
            raise ConfigurationError(
                f"{folder.parent}: the disk is full, and what was written has been removed. Free "
                "some space, or choose another folder by `cache_dir` or by the environment "
                "variable ELMO_SCRATCH_CACHE."
            ) from None
        is_closed = isinstance(error, (PermissionError, FileExistsError, NotADirectoryError))
        if is_closed or error.errno == errno.EROFS:
            # A lock or a part of the folder are nobody's business.
            is_above = error.filename and folder.is_relative_to(error.filename)
            named = error.filename if is_above else folder.parent
            raise ConfigurationError(
                f"{named}: cannot be written ({error.strerror}). Choose "
                "another folder by `cache_dir` or by the environment variable ELMO_SCRATCH_CACHE."
            ) from None
        raise


def is_whole(folder: Path) -> bool:
    """
    Whether `make_once` made the folder, and its files still are what they were: by their sizes, and
    by their checksums where there are some. Reads all of them, once for each process.
    """
    try:
        sizes = json.loads((folder / MANIFEST).read_text("utf-8"))
        if not sizes.keys() <= {*os.listdir(folder)}:
            return False
        if any((folder / name).stat().st_size != size for name, size in sizes.items()):
            return False
        if CHECKSUMS not in sizes:
            return True
        checksums = json.loads((folder / CHECKSUMS).read_text("utf-8"))
        if checksums.keys() != sizes.keys() - {CHECKSUMS}:
            return False
        stamps = tuple(stamp_of(folder / name) for name in (CHECKSUMS, *checksums))
        if _CHECKED.get(folder) != stamps and checksums != _checksums(folder, list(checksums)):
            return False
        _CHECKED[folder] = stamps
        return True
    except (OSError, ValueError, AttributeError, RecursionError):
        return False


_CHECKED: Dict[Path, Tuple[Stamp, ...]] = {}
"""The folders whose files this process has read, with the stamps of these files."""


def _checksums(folder: Path, names: List[str]) -> Dict[str, int]:
    """The CRC-32 of files, by their names."""
    checksums: Dict[str, int] = {}
    total = sum((folder / name).stat().st_size for name in names)
    with Tqdm.tqdm(
        total=total, desc="checking what is prepared", unit="B", unit_scale=True, delay=1
    ) as progress:
        for name in names:
            checksums[name] = 0
            with open(folder / name, "rb") as file:
                while block := file.read(READ_AT_ONCE):
                    checksums[name] = zlib.crc32(block, checksums[name])
                    progress.update(len(block))
    return checksums


def _make(folder: Path, write: Callable[[Path], None]) -> None:
    """Makes a folder. The caller holds its lock."""
    part = folder.with_name(folder.name + PART)
    _remove_leftovers(part)
    if folder.exists():
        logger.warning("%s is damaged and will be made anew", folder)
        shutil.rmtree(folder)
    try:
        part.mkdir()
        write(part)
        checksums = _checksums(part, sorted(os.listdir(part)))
        (part / CHECKSUMS).write_text(json.dumps(checksums, indent=2) + "\n", "utf-8")
        sizes = {path.name: path.stat().st_size for path in part.iterdir()}
        (part / MANIFEST).write_text(json.dumps(sizes, indent=2) + "\n", "utf-8")
        # After a power failure no manifest may name files that never reached the disk.
        move(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _remove_leftovers(own: Path) -> None:
    """Removes half-made folders that no process works on."""
    shutil.rmtree(own, ignore_errors=True)
    for part in own.parent.glob(f"*{PART}"):
        try:
            with FileLock(_lock_path(part.with_suffix("")), timeout=0):
                shutil.rmtree(part, ignore_errors=True)
        except (Timeout, OSError):
            # Another process works on the folder, or another user owns it.
            pass


def _lock_path(folder: Path) -> str:
    return f"{folder}.lock"


"""The environment variable that names the folder of prepared corpora."""


class PreparedCorpus:
    """
    The sentences of a corpus, one shard after the other, as numbers of words. All arrays are
    memory-mapped: the processes of a machine share them, and the system can take their memory back.

    # Parameters

    folder : `Path`
        A folder that `PreparedCorpus.of` has prepared.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.words = WordTable(folder)
        """The distinct words. A token is the number of its word here."""
        self.tokens = numpy.memmap(folder / TOKENS, dtype=TOKEN_TYPE, mode="r")
        """Shape `(tokens,)`, without marks of sentence boundaries."""
        self.sentence_starts = numpy.memmap(folder / SENTENCE_STARTS, dtype=START_TYPE, mode="r")
        """Shape `(sentences + 1,)`: the offset of each sentence in `tokens`."""
        self.shard_starts = numpy.fromfile(folder / SHARD_STARTS, dtype=START_TYPE)
        """Shape `(shards + 1,)`: the first sentence of each shard."""
        self.audit = CorpusAudit.read(folder / AUDIT)

    @classmethod
    def of(
        cls,
        data_path: DataPath,
        tokenizer: Optional[Tokenizer] = None,
        max_tokens: Optional[int] = None,
        cache_dir: Optional[str] = None,
        skip_empty_shards: bool = False,
    ) -> "PreparedCorpus":
        """
        Finds the prepared form of a corpus, or prepares it: once for all processes and trainings
        with the same text and settings. Lines without a token are skipped.

        # Parameters

        data_path : `DataPath`
            Text files, one sentence a line, plain or compressed; see `list_shards`.
        tokenizer : `Tokenizer`, optional (default = `None`)
            Splits a line into tokens. `None` splits at white space.
        max_tokens : `int`, optional (default = `None`)
            Tokens of a sentence after this many are dropped. `None` keeps all.
        cache_dir : `str`, optional (default = `None`)
            The folder of prepared corpora. `None` takes the environment variable
            `ELMO_SCRATCH_CACHE`, or else `~/.cache/elmo_scratch/corpora`.
        skip_empty_shards : `bool`, optional (default = `False`)
            Skip files without a token, and name them in a warning.

        # Raises

        ConfigurationError
            If no file matches, one can't be read, is not UTF-8, is a damaged compressed file,
            changes while it is read or holds no token, none holds one, or the disk is full.
        """
        check_max_tokens(max_tokens)
        if type(tokenizer) is WhitespaceTokenizer:
            tokenizer = None
        shards = list_shards(data_path)
        # The name of a fetched file doesn't tell its kind.
        check_no_table([*named_paths(data_path), *shards])
        if not skip_empty_shards:
            # Empty files are reported before the rest is read, which may take long.
            check_not_empty([shard for shard in shards if not shard.stat().st_size])
        cache = Path(cache_dir).expanduser() if cache_dir is not None else default_cache_dir()
        stamps = shard_stamps(shards)
        folder = cache / corpus_key(shards, tokenizer, max_tokens, cache)

        def prepare(part: Path) -> None:
            prepare_corpus(shards, tokenizer, max_tokens, part)
            for shard, before, after in zip(shards, stamps, shard_stamps(shards)):
                if before != after:
                    raise ConfigurationError(f"{shard}: it has changed while it was read")

        make_once(folder, prepare)
        corpus = cls(folder)
        starts = corpus.shard_starts
        empty = [shard for shard, start, end in zip(shards, starts, starts[1:]) if start == end]
        corpus.audit = corpus.audit._replace(empty_shards=[str(shard) for shard in empty])
        logger.info("Corpus in %s: %s", folder, corpus.audit.describe())
        if not skip_empty_shards:
            check_not_empty(empty)
        elif empty:
            logger.warning("Files of the corpus without a token: %s", first_names(empty))
        return corpus

    def __reduce__(self) -> Tuple[Any, ...]:
        return PreparedCorpus, (self.folder,)

    def ids_in(
        self, vocab: Vocabulary, namespace: str = "tokens", lowercase: bool = False
    ) -> numpy.ndarray:
        """
        The id of each word of `words` in a namespace of a vocabulary, or the unknown word's.

        # Parameters

        vocab : `Vocabulary`
            Any vocabulary.
        namespace : `str`, optional (default = `"tokens"`)
            The namespace of its words.
        lowercase : `bool`, optional (default = `False`)
            Whether it holds words in lower case only.

        # Returns

        `numpy.ndarray`
            Shape `(words,)`, of int64.
        """
        ids = vocab.get_token_to_index_vocabulary(namespace)
        unknown = vocab.get_token_index(vocab._oov_token, namespace)
        words: Iterable[str] = self.words
        if lowercase:
            # A word that is spelled like a mark stands for it, so its case stays.
            words = (word if word in MARKS else word.lower() for word in self.words)
        found = numpy.fromiter(
            (ids.get(word, unknown) for word in words), numpy.int64, len(self.words)
        )
        if vocab.is_padded(namespace):
            # A word that is written like AllenNLP's padding is not padding.
            found[found == 0] = unknown
        return found

    def unknown_share(
        self, vocab: Vocabulary, namespace: str = "tokens", lowercase: bool = False
    ) -> float:
        """
        The share of the tokens whose words a vocabulary lacks; the parameters are those of
        `ids_in`.
        """
        unknown = vocab.get_token_index(vocab._oov_token, namespace)
        return self.share_of(self.ids_in(vocab, namespace, lowercase) == unknown)

    def share_of(self, words: numpy.ndarray) -> float:
        """The share of the tokens whose words are selected. `words`: shape `(words,)`, of bool."""
        return float(self.words.counts[words].sum() / len(self.tokens))

    def release_pages(self) -> None:
        """
        Releases the memory of the pages that were read so far. They stay on the disk, and in the
        system's file cache as long as it has room.
        """
        for array in (self.tokens, self.sentence_starts):
            pages = array._mmap  # type: ignore[attr-defined]
            pages.madvise(mmap.MADV_DONTNEED)
