"""Reads a corpus of any size from disk."""

import errno
import json
import logging
import mmap
import os
import shutil
import zlib
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from allennlp.data import Vocabulary
from allennlp.data.tokenizers import Tokenizer, WhitespaceTokenizer
from filelock import FileLock, Timeout

from elmo_scratch.data.corpus.audit import CorpusAudit
from elmo_scratch.data.corpus.cache_folder import default_cache_dir
from elmo_scratch.data.corpus.corpus_key import corpus_key, shard_stamps
from elmo_scratch.data.corpus.preparation import (
    AUDIT,
    SENTENCE_STARTS,
    SHARD_STARTS,
    START_TYPE,
    TOKEN_TYPE,
    TOKENS,
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
from elmo_scratch.files.identity import READ_AT_ONCE, Stamp, stamp_of
from elmo_scratch_compat.whole_files import move

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
"""The size of each file of the folder, written last."""

CHECKSUMS = "checksums.json"
"""The CRC-32 of each file of the folder but the manifest. Folders of 0.2.0 have none."""

PART = ".elmo_scratch_part"
"""
The suffix of a folder while it is filled; other folders with this suffix are leftovers to remove.
"""

_FULL = (errno.ENOSPC, errno.EDQUOT)


def make_once(folder: Path, fill: Callable[[Path], None]) -> None:
    """
    Makes sure that a folder is there, whole. One process fills it beside its place and then moves
    it there; others wait. Half-made folders of killed processes, here and beside, are removed, and
    a folder in which a file is missing or is no longer what it was is made anew, with a warning.

    `fill` writes the files into an empty folder; an error there leaves nothing behind. Raises
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
                _make(folder, fill)
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
        if any((folder / name).stat().st_size != size for name, size in sizes.items()):
            return False
        if CHECKSUMS not in sizes:
            return True
        checksums = json.loads((folder / CHECKSUMS).read_text("utf-8"))
        stamps = tuple(stamp_of(folder / name) for name in (CHECKSUMS, *checksums))
        if _CHECKED.get(folder) != stamps and checksums != _checksums(folder, list(checksums)):
            return False
        _CHECKED[folder] = stamps
        return True
    except (OSError, ValueError, AttributeError):
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


def _make(folder: Path, fill: Callable[[Path], None]) -> None:
    """Fills a folder. The caller holds its lock."""
    part = folder.with_name(folder.name + PART)
    _remove_leftovers(part)
    if folder.exists():
        logger.warning("%s is damaged and will be made anew", folder)
        shutil.rmtree(folder)
    try:
        part.mkdir()
        fill(part)
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
