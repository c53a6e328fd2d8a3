"""What an export has written so far, kept beside its output until that is whole."""

import json
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional
from zipfile import BadZipFile

import numpy
from allennlp.common.checks import ConfigurationError
from filelock import FileLock, Timeout

from elmo_scratch.whole_file import whole_file

IDENTITY, LOCK = "export.json", "lock"

State = Dict[str, numpy.ndarray]


class Span(NamedTuple):
    """
    Sentences that follow each other.

    # Parameters

    start, stop : `int`
        The numbers of the first and of the one after the last.
    """

    start: int
    stop: int


class PartFolder:
    """
    The folder `NAME.parts` beside an output file `NAME`. It holds whole layer files, each of one
    span of sentences, and, where states are carried, the state that each span ends with.

    # Parameters

    output_file : `Path`
        The output file.
    """

    def __init__(self, output_file: Path) -> None:
        self.path = output_file.with_name(f"{output_file.name}.parts")

    @contextmanager
    def opened(self, identity: str, *, resume: bool, overwrite: bool) -> Iterator[None]:
        """
        The folder belongs to this process while the block runs.

        # Parameters

        identity : `str`
            Of the export.
        resume : `bool`
            Keep the parts that are there.
        overwrite : `bool`
            Remove them, whatever export they are of.

        # Raises

        ConfigurationError
            If another process writes there; if there are parts and neither is wanted; or parts of
            another export and `overwrite` is not.
        """
        try:
            self.path.mkdir(exist_ok=True)
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
            self._claim(identity, resume, overwrite)
            yield
        finally:
            lock.release()
            self._remove_if_bare()

    def file_of(self, span: Span) -> Path:
        """The layer file of a span."""
        return self.path / f"{span.start:012d}-{span.stop:012d}.hdf5"

    def finished(self) -> List[Span]:
        """The spans that are there, in their order."""
        names = [path.stem.split("-") for path in self.path.glob("[0-9]*-[0-9]*.hdf5")]
        return sorted(Span(int(start), int(stop)) for start, stop in names)

    def missing(self, whole: Span) -> List[Span]:
        """The spans of `whole` that are not there, in their order."""
        gaps, start = [], whole.start
        for done in self.finished():
            if done.start > start:
                gaps.append(Span(start, done.start))
            start = max(start, done.stop)
        return gaps + ([Span(start, whole.stop)] if start < whole.stop else [])

    def keep_state(self, stop: int, state: Optional[State]) -> None:
        """Keeps the state after the sentence before `stop`; before the part is."""
        if state is not None:
            with whole_file(self._state_file(stop)) as temporary:
                with temporary.open("wb") as file:
                    numpy.savez(file, allow_pickle=False, **state)

    def state_before(self, start: int) -> Optional[State]:
        """
        The state that a span starts from, if one was kept.

        # Raises

        ConfigurationError
            If it can't be read.
        """
        path = self._state_file(start)
        if not path.exists():
            return None
        try:
            with numpy.load(path, allow_pickle=False) as state:
                return dict(state)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise ConfigurationError(
                f"{path}: the state to go on from can't be read ({error}). Start anew with "
                "--overwrite."
            ) from None

    def remove(self) -> None:
        """Removes it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _claim(self, identity: str, resume: bool, overwrite: bool) -> None:
        """Sees to it that the parts are of this export."""
        record = self.path / IDENTITY
        if record.exists():
            kept = record.read_text(encoding="utf-8") == json.dumps({"export": identity})
            done = sum(stop - start for start, stop in self.finished())
            if not overwrite and not kept:
                raise ConfigurationError(
                    f"{self.path}: it holds {done} sentences of an unfinished export of another "
                    "text, another model or with other settings. Finish that with --resume and its "
                    "own arguments, choose another output, or remove it with --overwrite."
                )
            if not overwrite and not resume and done:
                raise ConfigurationError(
                    f"{self.path}: it holds {done} sentences of an unfinished run of this export. "
                    "Go on with it by --resume, or start anew with --overwrite."
                )
            if overwrite or not kept:
                self._empty()
        # What a process that was killed was about to write.
        for pattern in (".*.part", "unfinished-*"):
            for leftover in self.path.glob(pattern):
                leftover.unlink()
        with whole_file(record) as temporary:
            temporary.write_text(json.dumps({"export": identity}), encoding="utf-8")

    def _empty(self) -> None:
        for path in self.path.iterdir():
            if path.name != LOCK:
                path.unlink()

    def _remove_if_bare(self) -> None:
        """Leaves no folder behind in which there is nothing to go on with."""
        if self.path.exists() and not self.finished():
            self.remove()

    def _state_file(self, number: int) -> Path:
        return self.path / f"{number:012d}.state.npz"
