"""Writes the parts of an export, and joins them."""

import os
import time
import uuid
from pathlib import Path
from typing import Callable, ContextManager, Iterator, List, Optional, Tuple

from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export.embedded_batches import (
    EmbeddedBatch,
    PartEnd,
    StepEmbedder,
    spelled_steps,
)
from elmo_scratch.export.export_settings import ExportSettings
from elmo_scratch.export.part_folder import PartFolder, Span
from elmo_scratch.export.text import InputText
from elmo_scratch.export.threads import DEPTH, consume_behind
from elmo_scratch.files.atomic import sync
from elmo_scratch.interop import LayerFileFacts, LayerFileWriter

JOINED = "unfinished-output.hdf5"
"""The output before it is whole: within the folder of parts, where the next run clears it away."""

LOOKS, SECONDS_BETWEEN_LOOKS = 6, 1.0
"""
How often to look for a part before it is missing: a network file system may list a folder as it was
some seconds ago.
"""


class PartWriting:
    """
    What the parts of an export have in common.

    # Parameters

    text : `InputText`
        The text.
    whole : `Span`
        The sentences that the output will hold.
    folder : `PartFolder`
        Where the parts lie.
    facts : `LayerFileFacts`
        What the output says of itself.
    settings : `ExportSettings`
        What is kept, and how.
    """

    def __init__(
        self,
        text: InputText,
        whole: Span,
        folder: PartFolder,
        facts: LayerFileFacts,
        settings: ExportSettings,
    ) -> None:
        self.text = text
        self.whole = whole
        self.folder = folder
        self.facts = facts
        self.settings = settings

    def write(
        self,
        span: Span,
        layers: SentenceLayers,
        done: Callable[[int], None],
        seconds_a_part: float,
    ) -> None:
        """
        Writes the parts of a span.

        # Parameters

        span : `Span`
            None of it is there yet.
        layers : `SentenceLayers`
            The biLM.
        done : `Callable[[int], None]`
            Is told how many more sentences have been written.
        seconds_a_part : `float`
            As in `StepEmbedder`.

        # Raises

        ConfigurationError
            If the text has changed since it was checked, a carried state to go on from can't be
            read, or a GPU's memory holds no part of a batch.
        OSError
            If the disk is full.
        """
        if layers.state == "carry":
            layers.carry_on_from(self.folder.state_before(span.start))
        steps = spelled_steps(self.text, span, layers, self.settings)
        embed = StepEmbedder(span, layers, seconds_a_part)
        # Writing that finds no processor takes turns with the biLM: it would stop one of the
        # threads of each product, and all others wait for that one.
        depth = DEPTH if layers.leaves_a_processor else 0
        consume_behind(steps, embed, lambda batches: self._write_parts(span, batches, done), depth)

    def join(self, output_file: Path) -> None:
        """
        Makes the output of the parts.

        # Parameters

        output_file : `Path`
            The output file.

        # Raises

        ConfigurationError
            If parts are missing or damaged, the text has changed since it was checked, or the index
            of sentences is too large.
        OSError
            If the disk is full.
        """
        parts = self._all_parts()
        if parts == [self.whole]:
            os.replace(self.folder.file_of(self.whole), output_file)
            return
        joined = self.folder.path / JOINED
        # In a thread, as the parts themselves: it is given the memory that their threads, and not
        # this one, have let go of.
        consume_behind(
            (part for part in parts),
            self.folder.file_of,
            lambda paths: self._write_joined(joined, paths),
            depth=0,
        )
        self.text.check_unchanged()
        # The parts are removed next.
        sync(joined)
        os.replace(joined, output_file)
        sync(output_file.parent)

    def _all_parts(self) -> List[Span]:
        """The parts, which hold all sentences; an error if they don't."""
        for _ in range(LOOKS - 1):
            if not self.folder.missing(self.whole):
                break
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
        return self.folder.parts()

    def _write_joined(self, path: Path, parts: Iterator[Path]) -> None:
        """Copies what is in the files of all parts into one."""
        with self._new_file(path) as file:
            # First, while HDF5 holds no memory from copying yet.
            if self.settings.has_index:
                file.write_index(self._index())
            for part in parts:
                file.copy_from(part)

    def _write_parts(
        self, span: Span, batches: Iterator[EmbeddedBatch], done: Callable[[int], None]
    ) -> None:
        """Writes one part after the other."""
        start = span.start
        while start < span.stop:
            # A worker that nobody could stop may write the same.
            unfinished = self.folder.path / f"unfinished-{start}-{uuid.uuid4().hex}.hdf5"
            with self._new_file(unfinished) as file:
                end = self._write_part(batches, file, done)
                if Span(start, end.stop) == self.whole and self.settings.has_index:
                    file.write_index(self._index())
            # Vectors of other words must not be taken for those of the text.
            self.text.check_unchanged()
            if end.stop < self.whole.stop:
                self.folder.keep_state(end.stop, end.state)
            part = Span(start, end.stop)
            if part != self.whole:
                # By its name it is taken to be whole when others are gone on with.
                sync(unfinished)
            os.replace(unfinished, self.folder.file_of(part))
            start = end.stop

    def _write_part(
        self, batches: Iterator[EmbeddedBatch], file: LayerFileWriter, done: Callable[[int], None]
    ) -> PartEnd:
        """Writes batches up to the end of a part."""
        # A variable would hold a batch while this waits for the next one.
        for end in map(lambda batch: self._write_batch(batch, file, done), batches):
            if end is not None:
                return end
        raise ConfigurationError(
            f"{self.text.name}: the text has become shorter since it was checked"
        )

    def _write_batch(
        self, batch: EmbeddedBatch, file: LayerFileWriter, done: Callable[[int], None]
    ) -> Optional[PartEnd]:
        """Writes a batch, and says whether a part ends with it."""
        # Taking a part of an array is many times faster than taking one of a tensor.
        array = batch.layers.numpy()
        for row, (number, line, tokens) in enumerate(batch.sentences):
            key = line if self.settings.use_sentence_keys else str(number)
            file.write(key, self.settings.of_layers(array[:, row, : len(tokens)]))
        done(len(batch.sentences))
        return batch.end

    def _new_file(self, path: Path) -> ContextManager[LayerFileWriter]:
        return LayerFileWriter.open(path, self.facts, compression=self.settings.compression)

    def _index(self) -> Iterator[Tuple[str, str]]:
        """Each sentence and its key."""
        return ((line, str(number)) for number, line, _ in self.text.sentences(*self.whole))
