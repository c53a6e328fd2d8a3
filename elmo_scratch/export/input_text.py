"""A text to export: one sentence a line, its tokens separated by white space."""

import hashlib
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.text_lines import text_lines

NAMED_AT_MOST = 20
"""How many line numbers an error lists."""

FORBIDDEN_IN_KEYS = {"/": "a slash", "\0": "a NUL"}
"""What no name in an HDF5 file may hold: the first divides groups, the second ends a name."""


class Sentence(NamedTuple):
    """
    # Parameters

    number : `int`
        Of its line, from 0.
    line : `str`
        The line, stripped.
    tokens : `List[str]`
        What white space separates in it, as `str.split` knows white space.
    """

    number: int
    line: str
    tokens: List[str]


class InputText:
    """
    A text that has been read once from its first line to its last, and is read again for its
    sentences, so that it never has to be in memory.

    # Parameters

    name : `str`
        What errors call it.
    source : `Union[Path, Sequence[str]]`
        Its file, or its lines.

    # Raises

    ConfigurationError
        If it can't be read, or a line holds no token; the message names the lines.
    """

    def __init__(self, name: str, source: Union[Path, Sequence[str]]) -> None:
        self.name = name
        self._source = source
        self.num_sentences = self.num_tokens = 0
        digest = hashlib.sha256()
        blank: List[int] = []
        for number, line in enumerate(self._lines(), start=1):
            num_tokens = len(line.split())
            if num_tokens == 0:
                blank.append(number)
            self.num_sentences += 1
            self.num_tokens += num_tokens
            digest.update(line.strip().encode("utf-8") + b"\n")
        if blank:
            raise ConfigurationError(
                f"{name}, {_named(blank)}: expected a sentence, but the line is blank. Remove "
                "blank lines: the keys of the output are line numbers."
            )
        self.digest = f"sha256:{digest.hexdigest()}"

    def is_file(self, path: Path) -> bool:
        """Whether the text is read from the file at `path`, by whatever name."""
        source = self._source
        return (
            isinstance(source, Path) and source.exists() and path.exists() and path.samefile(source)
        )

    def sentences(self, start: int = 0, stop: Optional[int] = None) -> Iterator[Sentence]:
        """
        # Parameters

        start, stop : `int`, optional (default = all)
            The numbers of the first sentence and of the one after the last.
        """
        for number, line in enumerate(self._lines()):
            if stop is not None and number >= stop:
                return
            if number >= start:
                yield Sentence(number, line.strip(), line.split())

    def check_keys(self) -> None:
        """
        Checks that each sentence can be the key of its vectors.

        # Raises

        ConfigurationError
            If a sentence comes twice, or holds what no name in an HDF5 file may hold. The message
            names the lines.
        """
        first_of: Dict[bytes, int] = {}
        repeated: List[int] = []
        for number, line, _ in self.sentences():
            for character, described in FORBIDDEN_IN_KEYS.items():
                if character in line:
                    raise ConfigurationError(
                        f"{self.name}, line {number + 1}: the sentence holds {described}, and no "
                        "key in an HDF5 file can. Leave --use-sentence-keys out, or replace it."
                    )
            if line in (".", "sentence_to_index"):
                raise ConfigurationError(
                    f"{self.name}, line {number + 1}: {line!r} is a name that HDF5 files of layers "
                    "keep for themselves. Leave --use-sentence-keys out."
                )
            key = hashlib.blake2b(line.encode("utf-8"), digest_size=16).digest()
            if first_of.setdefault(key, number) != number:
                repeated += [first_of[key] + 1, number + 1]
        if repeated:
            raise ConfigurationError(
                f"{self.name}, {_named(sorted(set(repeated)))}: expected no sentence twice, but "
                "these lines repeat each other. Leave --use-sentence-keys out, or remove them."
            )

    def _lines(self) -> Iterator[str]:
        """From the first one on."""
        if isinstance(self._source, Path):
            return text_lines(self._source, name=self.name)
        return iter(self._source)


def _named(numbers: Sequence[int]) -> str:
    """Line numbers in words."""
    named = ", ".join(map(str, numbers[:NAMED_AT_MOST]))
    more = f" and {len(numbers) - NAMED_AT_MOST} more" if len(numbers) > NAMED_AT_MOST else ""
    return f"line{'s' if len(numbers) > 1 else ''} {named}{more}"
