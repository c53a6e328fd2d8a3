"""What an export has written so far, kept beside its output until that is whole."""

import json
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional
from zipfile import BadZipFile

import numpy
from allennlp.common.checks import ConfigurationError
from filelock import FileLock, Timeout

from elmo_scratch.files.atomic import sync, whole_file

IDENTITY, LOCK = "export.json", "lock"

LEFTOVERS = re.compile(r"\..*\.part|unfinished-.*")
"""What a process was about to write when it was killed."""

PART, STATE = re.compile(r"(\d{12})-(\d{12})\.hdf5"), re.compile(r"\d{12}\.state\.npz")
"""What a run can go on from."""

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

    @property
    def num_sentences(self) -> int:
        """How many they are."""
        return self.stop - self.start


class PartFolder:
    """
    The folder `NAME.parts` beside an output file `NAME`. It holds whole layer files, each of one
    span of sentences, and, where states are carried, the state that the next one starts from.

    # Parameters

    output_file : `Path`
        The output file.
    """

    def __init__(self, output_file: Path) -> None:
        self.path = output_file.with_name(f"{output_file.name}.parts")
        self._is_removed = False

    @contextmanager
    def opened(self, identity: str, *, resume: bool, overwrite: bool) -> Iterator[None]:
        """
        The folder belongs to this process while the block runs.

        # Parameters

        identity : `str`
            Of the export.
        resume : `bool`
            Keep the parts of this export that are there.
        overwrite : `bool`
            Remove all others.

        # Raises

        ConfigurationError
            If another process writes there; if there are parts and neither is wanted; or parts of
            another export and `overwrite` is not; or if something else lies there.
        """
        with self._locked():
            self._claim(identity, resume, overwrite)
            self._is_removed = False
            try:
                yield
            finally:
                # What the block has removed may be there again, for another process.
                if not self._is_removed and not self.finished():
                    self.remove()

    def remove_if_of(self, identity: str) -> None:
        """
        Removes what a run left that was killed when its output was whole.

        # Parameters

        identity : `str`
            Of the export.

        # Raises

        ConfigurationError
            If another process writes there.
        """
        if self._is_of(identity):
            with self._locked():
                self.remove()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """For this process alone."""
        try:
            self.path.mkdir(exist_ok=True)
            self._check_content()
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
        """The layer file of a span."""
        return self.path / f"{span.start:012d}-{span.stop:012d}.hdf5"

    def finished(self) -> List[Span]:
        """The spans that are there, in their order."""
        names = [PART.fullmatch(path.name) for path in self.path.glob("*.hdf5")]
        return sorted(Span(int(name[1]), int(name[2])) for name in names if name)

    def parts(self) -> List[Span]:
        """
        The spans that are there, without those that overlap with an earlier one: a worker that
        nobody could stop may have gone on beside the next run, which has divided the text anew.
        """
        chosen: List[Span] = []
        for span in sorted(self.finished(), key=lambda span: (span.start, -span.stop)):
            if not chosen or span.start >= chosen[-1].stop:
                chosen.append(span)
        return chosen

    def missing(self, whole: Span) -> List[Span]:
        """The spans of `whole` that `parts` lacks, in their order."""
        gaps, start = [], whole.start
        for done in self.parts():
            if done.start > start:
                gaps.append(Span(start, done.start))
            start = done.stop
        return gaps + ([Span(start, whole.stop)] if start < whole.stop else [])

    def num_done(self, identity: str) -> int:
        """
        # Parameters

        identity : `str`
            Of an export.

        # Returns

        `int`
            Its sentences that are there.
        """
        if not self._is_of(identity):
            return 0
        return self._num_finished()

    def num_bytes(self) -> int:
        """What the parts take already."""
        return sum(self.file_of(span).stat().st_size for span in self.finished())

    def keep_state(self, stop: int, state: Optional[State]) -> None:
        """Keeps the state after the sentence before `stop`; before the part is."""
        if state is not None:
            with whole_file(self._state_file(stop)) as temporary:
                with temporary.open("wb") as file:
                    numpy.savez(file, allow_pickle=False, **state)
                sync(temporary)

    def state_before(self, start: int) -> Optional[State]:
        """
        The state that a span starts from; `None` for the first.

        # Raises

        ConfigurationError
            If it is missing or can't be read.
        """
        if start == 0:
            return None
        path = self._state_file(start)
        try:
            with numpy.load(path, allow_pickle=False) as state:
                return dict(state)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise ConfigurationError(
                f"{path}: the state to go on from can't be read ({error}). Start anew with "
                f"--overwrite, or without the folder {self.path}."
            ) from None

    def remove(self) -> None:
        """Removes all that an export keeps there, and the folder if nothing else is in it."""
        self._is_removed = True
        with suppress(OSError):
            self._empty()
            (self.path / LOCK).unlink(missing_ok=True)
            self.path.rmdir()

    def _claim(self, identity: str, resume: bool, overwrite: bool) -> None:
        """Sees to it that the parts are of this export."""
        record = self.path / IDENTITY
        if record.exists() or self.finished():
            kept = self._is_of(identity)
            done = self._num_finished()
            if not overwrite and not kept and done:
                raise ConfigurationError(
                    f"{self.path}: it holds {done} sentences of an unfinished export of another "
                    "text, another model or with other settings; or with products in bfloat16 by "
                    "a processor that is faster in it than this one, which takes float32. Finish "
                    "that with --resume and its own arguments, choose another output, or remove "
                    "it: this folder, or by --overwrite."
                )
            if not overwrite and not resume and done:
                raise ConfigurationError(
                    f"{self.path}: it holds {done} sentences of an unfinished run of this export. "
                    "Go on with it by --resume, or start anew: without this folder, or with "
                    "--overwrite."
                )
            if not kept or (overwrite and not resume):
                self._empty()
        for path in self.path.iterdir():
            if LEFTOVERS.fullmatch(path.name):
                path.unlink()
        with whole_file(record) as temporary:
            temporary.write_text(json.dumps({"export": identity}), encoding="utf-8")

    def _num_finished(self) -> int:
        """The sentences that are there."""
        return sum(span.num_sentences for span in self.parts())

    def _check_content(self) -> None:
        """An error if there is what no export keeps there: with the parts it would be removed."""
        strange = [
            path.name
            for path in self.path.iterdir()
            if path.name not in (IDENTITY, LOCK)
            and not any(kind.fullmatch(path.name) for kind in (PART, STATE, LEFTOVERS))
        ]
        if strange:
            raise ConfigurationError(
                f"{self.path}: expected nothing but parts of an export, but there is "
                f"{sorted(strange)[0]}. Move it away, or choose another output."
            )

    def _is_of(self, identity: str) -> bool:
        """Whether the parts are known to be of an export."""
        try:
            record = (self.path / IDENTITY).read_text(encoding="utf-8")
        except OSError:
            return False
        return record == json.dumps({"export": identity})

    def _empty(self) -> None:
        """Removes the parts, and then what says whose they are."""
        for path in self.path.iterdir():
            if any(kind.fullmatch(path.name) for kind in (PART, STATE, LEFTOVERS)):
                path.unlink()
        (self.path / IDENTITY).unlink(missing_ok=True)

    def _state_file(self, number: int) -> Path:
        return self.path / f"{number:012d}.state.npz"
