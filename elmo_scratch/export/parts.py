"""The unfinished parts of an export, kept beside its output until the output is whole."""

import json
import logging
import os
import re
import shutil
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Set, Tuple

import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from filelock import FileLock, Timeout

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export.pipeline import EmbeddedBatch, PartEnd, consume_behind
from elmo_scratch.export.plan import ExportSettings, Shard, Span, State, check_output
from elmo_scratch.export.text import InputText
from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.interop import LayerFile, LayerFileFacts, LayerFileWriter
from elmo_scratch_compat.unfinished import LONGEST_NAME
from elmo_scratch_compat.whole_files import move

PARTS = ".parts"
"""The end of the name of the folder, after that of the output."""

IDENTITY, LOCK = "export.json", "lock"
PART_NAME, STATE_NAME = "{:012d}-{:012d}.hdf5", "{:012d}.state.npz"

LEFTOVERS = re.compile(r"\..*\.part|unfinished-.*")
"""Files, and folders of files, that a process was writing when it was killed."""

PART, STATE = re.compile(r"(\d{12})-(\d{12})\.hdf5"), re.compile(r"\d{12}\.state\.npz")
"""Files that a run can resume from."""

OWN = re.compile("|".join(kind.pattern for kind in (PART, STATE, LEFTOVERS)))
"""Files that are removed with the folder."""


MAKE_ANEW = (
    "Go on with --resume, which makes a damaged part anew, or by the same call of `embed_file`."
)
"""The way out where a part is not what it was."""

STATE_PARTS = {"hidden", "cell"}
"""The names of the arrays in a file of a state."""

logger = logging.getLogger(__name__)


class PartFolder:
    """
    The folder `NAME.parts` beside an output file `NAME`. It holds complete layer files, each of one
    span of sentences, and, where states are carried, the state that the next span starts from.

    Raises `ConfigurationError` if its name would be longer than names of files can be.
    """

    def __init__(self, output_file: Path) -> None:
        self.output_file = output_file
        self.path = output_file.with_name(f"{output_file.name}{PARTS}")
        if len(os.fsencode(self.path.name)) > LONGEST_NAME:
            raise ConfigurationError(
                f"{output_file}: expected a name of at most {LONGEST_NAME - len(PARTS)} bytes, but "
                f"it has {len(os.fsencode(output_file.name))}: until it is whole, its parts lie in "
                f"a folder whose name ends in {PARTS}. Choose a shorter one."
            )
        self._is_removed = False

    @contextmanager
    def opened(self, identity: str, *, resume: bool, overwrite: bool) -> Iterator[None]:
        """
        Locks the folder for this process while the block runs. With `resume`, parts of this export
        (`identity`) are kept; with `overwrite`, all others are removed.

        Raises `ConfigurationError` if another process writes there, if there are parts and neither
        is set, if there are parts of another export without `overwrite`, or if something else lies
        there.
        """
        with self._locked():
            is_own = self._is_of(identity)
            done = sum(span.num_sentences for span in self.parts())
            if done and not overwrite and not is_own:
                raise ConfigurationError(
                    f"{self.path}: it holds {done} sentences of an unfinished export of another "
                    "text, another model or with other settings; or with products in bfloat16 by "
                    "a processor that is faster in it than this one, which takes float32. Finish "
                    "that with --resume and its own arguments, choose another output, or remove "
                    "it: this folder, or by --overwrite."
                )
            if done and not overwrite and not resume:
                raise ConfigurationError(
                    f"{self.path}: it holds {done} sentences of an unfinished run of this export. "
                    "Go on with it by --resume, or start anew: without this folder, or with "
                    "--overwrite."
                )
            is_kept = is_own and (resume or not overwrite)
            for path in self.path.iterdir():
                if (LEFTOVERS if is_kept else OWN).fullmatch(path.name):
                    _remove(path)
            for span in Tqdm.tqdm(self.parts(), desc="checking parts", unit=" parts", delay=1):
                if told := self._shortcoming(span, are_numbers_read=True):
                    logger.warning("%s; it is made anew", told)
                    self.file_of(span).unlink()
            with atomic_write(self.path / IDENTITY) as temporary:
                temporary.write_text(json.dumps({"export": identity}), encoding="utf-8")
            self._is_removed = False
            try:
                yield
            finally:
                # The block may have removed the folder, and another process made it anew.
                if not self._is_removed and not self.parts():
                    self.remove()

    def remove_if_of(self, identity: str) -> None:
        """
        Removes what a run of this export left that was killed when its output was whole. Raises
        `ConfigurationError` if another process writes there.
        """
        if self._is_of(identity):
            with self._locked():
                self.remove()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """
        Makes the folder and locks it for the block. Refuses a folder with files that no export
        writes: they would be removed with the parts.
        """
        try:
            self.path.mkdir(exist_ok=True)
            for name in sorted(os.listdir(self.path)):
                if name not in (IDENTITY, LOCK) and not OWN.fullmatch(name):
                    raise ConfigurationError(
                        f"{self.path}: expected nothing but parts of an export, but there is "
                        f"{name}. Move it away, or choose another output."
                    )
            lock = FileLock(self.path / LOCK, timeout=0)
            lock.acquire()
        except FileExistsError:
            raise ConfigurationError(
                f"{self.path}: expected a folder of parts, not a file"
            ) from None
        except Timeout:
            raise ConfigurationError(f"{self.path}: another process is writing there") from None
        except OSError as error:
            raise ConfigurationError(
                f"{self.path}: can't be made or written to ({error.strerror})"
            ) from None
        try:
            yield
        finally:
            lock.release()

    def file_of(self, span: Span) -> Path:
        return self.path / PART_NAME.format(*span)

    def parts(self) -> List[Span]:
        """
        Returns the spans of all parts, in order, without those that overlap with an earlier one: a
        worker that nobody could stop may have gone on beside the next run, which has split the text
        anew.
        """
        names = [PART.fullmatch(path.name) for path in self.path.glob("*.hdf5")]
        spans = [Span(int(name[1]), int(name[2])) for name in names if name]
        chosen: List[Span] = []
        for span in sorted(spans, key=lambda span: (span.start, -span.stop)):
            if not chosen or span.start >= chosen[-1].stop:
                chosen.append(span)
        return chosen

    def check_whole(self) -> None:
        """Raises `ConfigurationError` if a part holds other sentences than its name says."""
        for span in self.parts():
            if told := self._shortcoming(span):
                raise ConfigurationError(f"{told}. {MAKE_ANEW}")

    def _shortcoming(self, span: Span, *, are_numbers_read: bool = False) -> str:
        """
        What a part has in place of the sentences that its name says; empty if it has them. With
        `are_numbers_read` also what is wrong with their vectors.
        """
        path = self.file_of(span)
        try:
            with LayerFile(path) as part:
                num_sentences = len(part)
                if are_numbers_read and num_sentences == span.num_sentences:
                    part.check()
        except ConfigurationError as error:
            return error.message
        if num_sentences == span.num_sentences:
            return ""
        return (
            f"{path}: expected the {span.num_sentences} sentences that its name says, but it holds "
            f"{num_sentences}"
        )

    def missing(self, whole: Span) -> List[Span]:
        """Returns the spans of `whole` that `parts` lacks, in order."""
        gaps, start = [], whole.start
        for done in self.parts():
            if done.start > start:
                gaps.append(Span(start, done.start))
            start = done.stop
        return gaps + ([Span(start, whole.stop)] if start < whole.stop else [])

    def num_done(self, identity: str) -> int:
        """Returns how many sentences of an export are there; 0 if the parts are another's."""
        if not self._is_of(identity):
            return 0
        return sum(span.num_sentences for span in self.parts())

    def keep_state(self, stop: int, state: Optional[State]) -> None:
        """
        Saves the state after the sentence before `stop`; to be called before the part is finished.
        """
        if state is not None:
            with atomic_write(self.path / STATE_NAME.format(stop)) as temporary:
                with temporary.open("wb") as file:
                    numpy.savez(file, allow_pickle=False, **state)

    def state_before(self, start: int) -> Optional[State]:
        """
        Returns the state that a span starts from; `None` for the first. Raises `ConfigurationError`
        if it is missing or can't be read.
        """
        if start == 0:
            return None
        path = self.path / STATE_NAME.format(start)
        try:
            with numpy.load(path, allow_pickle=False) as file:
                state = {name: file[name] for name in file.files}
            if set(state) != STATE_PARTS or any(part.dtype.kind != "f" for part in state.values()):
                raise ValueError(f"expected the arrays {sorted(STATE_PARTS)}, not {sorted(state)}")
            return state
        # Damaged files make NumPy and `zipfile` raise nearly every kind of error there is.
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ConfigurationError(
                f"{path}: the state to go on from can't be read ({reason}). Start anew with "
                f"--overwrite, or without the folder {self.path}."
            ) from None

    def carry_on(self, layers: SentenceLayers, start: int) -> None:
        """
        Lets a biLM start a span from the state that `state_before` returns. Raises
        `ConfigurationError` if that does, or it is the state of another biLM.
        """
        try:
            layers.carry_on_from(self.state_before(start))
        except ValueError as error:
            raise ConfigurationError(
                f"{self.path / STATE_NAME.format(start)}: the state to go on from is of another "
                f"biLM ({error}). Start anew with --overwrite, or without the folder {self.path}."
            ) from None

    def remove(self) -> None:
        """Removes all files of an export, and the folder if nothing else is in it."""
        self._is_removed = True
        with suppress(OSError):
            for path in self.path.iterdir():
                if OWN.fullmatch(path.name):
                    _remove(path)
            # The record goes after the parts: it says whose they are.
            (self.path / IDENTITY).unlink(missing_ok=True)
            (self.path / LOCK).unlink(missing_ok=True)
            self.path.rmdir()

    def _is_of(self, identity: str) -> bool:
        """Whether the parts are known to belong to an export."""
        try:
            record = (self.path / IDENTITY).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return False
        return record == json.dumps({"export": identity})


def _remove(path: Path) -> None:
    """Removes a file, or a folder with all that is in it."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


JOINED = "unfinished-output.hdf5"
"""
The output before it is whole. It lies in the folder of parts, so that the next run removes it.
"""

LOOKS, SECONDS_BETWEEN_LOOKS = 6, 1.0
"""
How often, and in seconds how far apart, to look for a part before it counts as missing: a network
file system may list a folder as it was some seconds ago.
"""


@dataclass(frozen=True)
class PartWriting:
    """
    Writes and joins the parts of an export of `text`. `whole` are the sentences of the output,
    `facts` the output's description of itself.
    """

    text: InputText
    whole: Span
    folder: PartFolder
    facts: LayerFileFacts
    settings: ExportSettings

    def write_parts(
        self, span: Span, done: Callable[[int], None], batches: Iterator[EmbeddedBatch]
    ) -> None:
        """
        Writes the parts of a span of which nothing is there yet, from its embedded batches, up to
        its end or the last part of an interrupted export. `done` is told how many more sentences
        have been written.

        Raises `ConfigurationError` if the text has changed since it was checked, `OSError` if the
        disk is full.
        """
        compression = self.settings.compression
        start = span.start
        while start < span.stop:
            # A worker that nobody could stop may write the same.
            unfinished = self.folder.path / f"unfinished-{start}-{uuid.uuid4().hex}.hdf5"
            name = self.folder.output_file
            with LayerFileWriter.open(
                unfinished, self.facts, compression=compression, name=name
            ) as file:
                # A variable would keep a batch in memory while this waits for the next one.
                for end in map(lambda batch: self._write_batch(batch, file, done), batches):
                    if end is not None:
                        break
                else:
                    raise ConfigurationError(
                        f"{self.text.name}: the text has become shorter since it was checked"
                    )
                part = Span(start, end.stop)
                if part == self.whole and self.settings.has_index:
                    file.write_index(self._index())
            # Vectors of other words must not be taken for those of the text.
            self.text.check_unchanged()
            if end.stop < self.whole.stop:
                self.folder.keep_state(end.stop, end.state)
            # A part with its final name counts as whole when a run resumes.
            move(unfinished, self.folder.file_of(part))
            if end.is_last:
                return
            start = end.stop

    def join(self, output_file: Path) -> None:
        """
        Makes the output of the parts. Raises `ConfigurationError` if parts are missing or damaged,
        the text has changed since it was checked, or the index of sentences is too large; `OSError`
        if the disk is full.
        """
        missing = self.folder.missing(self.whole)
        for _ in range(LOOKS - 1):
            if missing:
                time.sleep(SECONDS_BETWEEN_LOOKS)
                missing = self.folder.missing(self.whole)
        if missing:
            named = ", ".join(f"{start} to {stop - 1}" for start, stop in missing)
            raise ConfigurationError(
                f"{self.folder.path}: expected the parts of all sentences from {self.whole.start} "
                f"to {self.whole.stop - 1}, but those of the sentences {named} are not there. Was "
                "something removed? The other parts are kept: go on with --resume, or by the same "
                "call of `embed_file`."
            )
        self.folder.check_whole()
        parts = self.folder.parts()
        if parts == [self.whole]:
            move(self.folder.file_of(self.whole), output_file)
            return
        joined = self.folder.path / JOINED
        # Joining runs in a thread, as the parts did: a thread gets the memory that their threads,
        # and not this one, have freed.
        consume_behind(
            (part for part in parts),
            self.folder.file_of,
            lambda paths: self._write_joined(joined, paths),
            depth=0,
        )
        self.text.check_unchanged()
        # The parts are removed next.
        move(joined, output_file)

    def _write_batch(
        self, batch: EmbeddedBatch, file: LayerFileWriter, done: Callable[[int], None]
    ) -> Optional[PartEnd]:
        """Writes a batch; returns the end of the part, if the batch ends one."""
        # Taking a part of an array is many times faster than taking one of a tensor.
        array = batch.layers.numpy()
        for row, (number, line, tokens) in enumerate(batch.sentences):
            key = line if self.settings.use_sentence_keys else str(number)
            file.write(key, self.settings.of_layers(array[:, row, : len(tokens)]))
        done(len(batch.sentences))
        return batch.end

    def _write_joined(self, path: Path, parts: Iterator[Path]) -> None:
        """Copies the contents of all parts into one file."""
        compression = self.settings.compression
        name = self.folder.output_file
        with LayerFileWriter.open(path, self.facts, compression=compression, name=name) as file:
            # First, while HDF5 holds no memory from copying yet.
            if self.settings.has_index:
                file.write_index(self._index())
            for part in parts:
                try:
                    file.copy_from(part)
                except ConfigurationError as error:
                    raise ConfigurationError(f"{error.message} {MAKE_ANEW}") from None

    def _index(self) -> Iterator[Tuple[str, str]]:
        """Yields each sentence and its key."""
        return ((line, str(number)) for number, line, _ in self.text.sentences(*self.whole))


def join_shards(output_file: Path, *, remove: bool = False, overwrite: bool = False) -> None:
    """
    Writes `output_file` from the files `NAME.I-of-N` beside it. Its data sets equal those that one
    process would have written.

    # Parameters

    output_file : `Path`
        The file to write.
    remove : `bool`, optional (default = `False`)
        Remove the files of the shards when the output is whole.
    overwrite : `bool`, optional (default = `False`)
        Replace another file of that name.

    # Raises

    ConfigurationError
        If a shard is missing, they don't belong together, or the output can't be written.
    OSError
        If the disk is full. The shards stay.
    """
    shards = _shards_beside(output_file)
    facts = _shared_facts(shards)
    is_there = check_output(output_file, facts.export, overwrite)
    are_all_there = len(shards) == next(iter(shards)).total
    # Some shards are gone if an earlier run was killed while it removed them.
    if are_all_there or not (is_there and _holds_all(output_file, shards)):
        _join_all(output_file, shards, facts, overwrite)
    if remove:
        for path in shards.values():
            path.unlink()


def _holds_all(output_file: Path, shards: Dict[Shard, Path]) -> bool:
    """
    Whether the output has all keys of the shards. A single shard under the output's name would have
    the same `export` too. Raises `ConfigurationError` if the output is damaged, as the shards may
    be all that is left.
    """
    with LayerFile(output_file) as output:
        output.check()
        keys = set(output.keys())
    for path in shards.values():
        with LayerFile(path) as shard:
            if not keys.issuperset(shard.keys()):
                return False
    return True


def _join_all(
    output_file: Path, shards: Dict[Shard, Path], facts: LayerFileFacts, overwrite: bool
) -> None:
    """Makes the output, if all shards are there."""
    total = next(iter(shards)).total
    missing = [f"{shard.number}/{total}" for shard in Shard.all_of(total) if shard not in shards]
    if missing:
        raise ConfigurationError(
            f"{output_file}: the output of --shard {', '.join(missing)} is missing. Run it first, "
            "or once more with --resume if it was interrupted."
        )
    # The output goes to where a link leads. Until it is whole, it lies in a folder that the next
    # run cleans if this one is killed.
    output_file = Path(os.path.realpath(output_file))
    folder = PartFolder(output_file)
    with folder.opened(facts.export, resume=True, overwrite=overwrite):
        joined = folder.path / JOINED
        _join(shards, facts, joined, output_file)
        move(joined, output_file)
        # Parts of an interrupted run without shards are of no more use either.
        folder.remove()


def _join(
    shards: Dict[Shard, Path], facts: LayerFileFacts, joined: Path, output_file: Path
) -> None:
    """Copies the contents of all shards into the file that becomes the output."""
    with LayerFileWriter.open(joined, facts, name=output_file) as file:
        indexes = []
        for path in shards.values():
            with LayerFile(path) as shard:
                if shard.has_index:
                    indexes.append(path)
        # First, while HDF5 holds no memory from copying yet.
        if indexes:
            file.write_index(chain.from_iterable(LayerFile(path).sentences() for path in indexes))
        for path in Tqdm.tqdm(shards.values(), unit=" shards"):
            file.copy_from(path)


def _shards_beside(output_file: Path) -> Dict[Shard, Path]:
    """Returns the files of the shards that are there, in order."""
    pattern = re.compile(re.escape(output_file.name) + r"\.(\d+)-of-(\d+)")
    matches = [pattern.fullmatch(path.name) for path in output_file.parent.glob("*-of-*")]
    found: Set[Shard] = {Shard(int(match[1]), int(match[2])) for match in matches if match}
    counts = sorted({shard.total for shard in found})
    if not counts:
        raise ConfigurationError(
            f"{output_file}: expected the outputs of its shards beside it, such as "
            f"{Shard(1, 2).file_of(output_file).name}, but there are none"
        )
    if len(counts) > 1:
        raise ConfigurationError(
            f"{output_file}: expected shards of one division, but there are some of "
            f"{' and of '.join(map(str, counts))}. Remove those that don't belong to it."
        )
    return {shard: shard.file_of(output_file) for shard in sorted(found)}


def _shared_facts(shards: Dict[Shard, Path]) -> LayerFileFacts:
    """Returns what all shards say of themselves; raises `ConfigurationError` if they differ."""
    facts: Dict[Path, LayerFileFacts] = {}
    for path in shards.values():
        with LayerFile(path) as shard:
            facts[path] = shard.facts
    first = shards[min(shards)]
    for path, own in facts.items():
        if own != facts[first]:
            raise ConfigurationError(
                f"{path}: expected a shard of the same export as {first}, but the text, the model "
                "or the settings were others; or products in bfloat16 ran in float32 for one of "
                "them, on a processor that is slow in it: `--matmul-dtype float32` is the same "
                "everywhere"
            )
    return facts[first]
