"""A text to export: sentences, cut into tokens."""

import hashlib
import heapq
import json
import os
from contextlib import suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.lines import text_lines
from elmo_scratch.data.sentence_forms import CutSentence, cut_sentences, form_by_name
from elmo_scratch.files.identity import Stamp, stamp_of
from elmo_scratch.interop.layer_files.reader import FORBIDDEN, NO_NAMES, SENTENCE_INDEX
from elmo_scratch.interop.layer_files.sentence_map import DIGEST_SIZE, is_last

NAMED_AT_MOST = 20
"""How many line numbers an error lists."""

LONGEST_OF_SAMPLE = 512
"""A sample prefers sentences of at most so many tokens."""


class Sentence(NamedTuple):
    """
    A sentence: its `number` in the text, from 0, the sentence as one line, and its tokens. In a
    text of one sentence a line the number is that of the line, and the line is as it was, stripped;
    or, where the rules of a language cut it, its tokens between spaces.
    """

    number: int
    line: str
    tokens: List[str]


class InputText:
    """
    A text that is read once to check it, and again for its sentences, so that it never has to fit
    into memory.

    # Parameters

    name : `str`
        The text's name in errors.
    source : `Union[Path, Sequence[str]]`
        Its file, or its lines.
    form : `str`, optional (default = by the ending of the file's name, else `"text"`)
        The form in `SENTENCE_FORMS`.
    language : `str`, optional (default = tokens stand between white space)
        The language by whose rules spaCy cuts the sentences of a text.
    most : `int`, optional (default = all)
        Only the first sentences, at most so many.

    # Raises

    ConfigurationError
        If it can't be read, is of another form, or a line holds no token; the message names the
        lines.
    """

    def __init__(
        self,
        name: str,
        source: Union[Path, Sequence[str]],
        form: Optional[str] = None,
        *,
        language: Optional[str] = None,
        most: Optional[int] = None,
    ) -> None:
        self.name = name
        if form is None:
            form = form_by_name(source.name) if isinstance(source, Path) else "text"
        self._form, self._language, self._most = form, language, most
        self._unit = "sentence" if form == "conllu" else "line"
        # Another process may have another working folder.
        if isinstance(source, Path):
            source = Path(os.path.expanduser(source)).absolute()
        self._source = source
        self._stamp = self._current_stamp()
        self._stopped: Optional[Tuple[int, Iterator[CutSentence]]] = None
        self.num_sentences = self.num_tokens = self.num_bytes = 0
        digest = hashlib.sha256()
        blank: List[int] = []
        for place, line, tokens in self._cut_sentences():
            if not tokens:
                blank.append(place)
            try:
                raw = line.encode("utf-8")
            except UnicodeEncodeError as error:
                raise ConfigurationError(
                    f"{name}, line {place}: expected text, but character {error.start + 1} of the "
                    f"line is {error.object[error.start]!r}, half of a surrogate pair. Replace it."
                ) from None
            self.num_sentences += 1
            self.num_tokens += len(tokens)
            self.num_bytes += len(raw)
            # White space within tokens looks like something else in the line.
            is_whole = form == "text" or line.split() == tokens
            digest.update((raw if is_whole else json.dumps(tokens).encode("utf-8")) + b"\n")
        if self.num_sentences == 0:
            raise ConfigurationError(f"{name}: expected at least one line of text, but it is empty")
        if blank:
            raise ConfigurationError(
                f"{name}, {_named(blank, 'line')}: expected a sentence, but the line is blank. "
                "Remove blank lines: the keys of the output are line numbers."
            )
        self.digest = f"sha256:{digest.hexdigest()}"

    def __getstate__(self) -> Dict[str, Any]:
        """Another process reads the file from its first line."""
        return {**self.__dict__, "_stopped": None}

    def is_file(self, path: Path) -> bool:
        """Whether the text is read from the file at `path`, by whatever name."""
        source = self._source
        return (
            isinstance(source, Path) and source.exists() and path.exists() and path.samefile(source)
        )

    def sentences(self, start: int = 0, stop: Optional[int] = None) -> Iterator[Sentence]:
        """
        Yields the sentences from number `start` up to, but without, `stop`. A file is read from its
        first line, or on from where the last call stopped if that is not after `start`.
        """
        next_number, found = self._stopped or (0, self._cut_sentences())
        self._stopped = None
        if next_number > start:
            next_number, found = 0, self._cut_sentences()
        count = None if stop is None else max(0, stop - start)
        for _ in islice(found, start - next_number):
            pass
        for number, (_, line, tokens) in enumerate(islice(found, count), start=start):
            yield Sentence(number, line, tokens)
        if stop is not None:
            self._stopped = max(start, stop), found

    def sample(self, count: int) -> List[Sentence]:
        """
        Returns `count` sentences, or all if there are fewer. They are chosen and ordered by their
        words alone: the same ones whatever the order of the lines.
        """

        def rank(sentence: Sentence) -> Tuple[bool, bytes]:
            return len(sentence.tokens) > LONGEST_OF_SAMPLE, _digest(" ".join(sentence.tokens))

        return heapq.nsmallest(count, self.sentences(), key=rank)

    def check_unchanged(self) -> None:
        """
        Raises `ConfigurationError` if the text is no longer what it was. Takes no time, unless its
        file was replaced or written to.
        """
        if self._current_stamp() == self._stamp:
            return
        current = InputText(
            self.name, self._source, self._form, language=self._language, most=self._most
        )
        if current.digest != self.digest:
            raise ConfigurationError(f"{self.name}: the text has changed since it was checked")
        self._stamp = current._stamp

    def check_keys(self) -> None:
        """
        Raises `ConfigurationError`, with the line numbers, if sentences can't be the keys of their
        vectors: a sentence comes twice, or holds what no name in an HDF5 file may hold.
        """
        with TemporaryFile() as digests:
            for sentence in self.sentences():
                self._check_key(sentence)
                digests.write(_digest(sentence.line))
            is_last_of_its_kind = is_last(digests)
        if is_last_of_its_kind.all():
            return
        kinds = zip(self.sentences(), is_last_of_its_kind)
        repeated = {_digest(line) for (_, line, _), is_only in kinds if not is_only}
        numbers = [number + 1 for number, line, _ in self.sentences() if _digest(line) in repeated]
        raise ConfigurationError(
            f"{self.name}, {_named(numbers, self._unit)}: expected no sentence twice, but these "
            f"{self._unit}s repeat each other. Leave --use-sentence-keys (`use_sentence_keys`) "
            "out, or remove them."
        )

    def _check_key(self, sentence: Sentence) -> None:
        """Raises `ConfigurationError` if HDF5 allows no such name."""
        place = f"{self.name}, {self._unit} {sentence.number + 1}"
        for character, described in FORBIDDEN.items():
            if character in sentence.line:
                raise ConfigurationError(
                    f"{place}: the sentence holds {described}, and no key in an HDF5 file can. "
                    "Leave --use-sentence-keys (`use_sentence_keys`) out, or replace it."
                )
        if sentence.line in (*NO_NAMES, SENTENCE_INDEX):
            raise ConfigurationError(
                f"{place}: {sentence.line!r} is a name that HDF5 files of layers keep for "
                "themselves. Leave --use-sentence-keys (`use_sentence_keys`) out."
            )

    def _current_stamp(self) -> Optional[Stamp]:
        """Returns the stamp of the text's file; `None` for lines, or if the file is gone."""
        if isinstance(self._source, Path):
            with suppress(OSError):
                return stamp_of(self._source)
        return None

    def _cut_sentences(self) -> Iterator[CutSentence]:
        lines: Iterable[str] = (
            self._source
            if not isinstance(self._source, Path)
            else text_lines(self._source, name=self.name)
        )
        return islice(cut_sentences(lines, self.name, self._form, self._language), self._most)


def _digest(line: str) -> bytes:
    """Stands for a line where all lines would take too much memory."""
    return hashlib.blake2b(line.encode("utf-8"), digest_size=DIGEST_SIZE).digest()


def _named(numbers: Sequence[int], unit: str) -> str:
    named = ", ".join(map(str, numbers[:NAMED_AT_MOST]))
    more = f" and {len(numbers) - NAMED_AT_MOST} more" if len(numbers) > NAMED_AT_MOST else ""
    return f"{unit}{'s' if len(numbers) > 1 else ''} {named}{more}"
