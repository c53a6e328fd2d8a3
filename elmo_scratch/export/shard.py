"""One of the equal parts of a text that several processes share."""

import re
from pathlib import Path
from typing import List, NamedTuple

from allennlp.common.checks import ConfigurationError

from elmo_scratch.export.part_folder import Span


class Shard(NamedTuple):
    """
    # Parameters

    number : `int`
        From 1.
    total : `int`
        How many there are.
    """

    number: int
    total: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """
        # Parameters

        text : `str`
            Such as "2/8".

        # Raises

        ConfigurationError
            If it is of another form, or there is no such shard.
        """
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        shard = cls(*map(int, match.groups())) if match else None
        if shard is None or not 1 <= shard.number <= shard.total:
            raise ConfigurationError(
                f"expected --shard I/N with I from 1 to N, such as 1/8 for the first of eight, but "
                f"got {text!r}"
            )
        return shard

    @classmethod
    def all_of(cls, count: int) -> "List[Shard]":
        """Every shard of so many."""
        return [cls(number, count) for number in range(1, count + 1)]

    def span_of(self, num_sentences: int) -> Span:
        """
        # Parameters

        num_sentences : `int`
            Of the whole text.

        # Raises

        ConfigurationError
            If there are more shards than sentences.
        """
        if self.total > num_sentences:
            raise ConfigurationError(
                f"expected no more shards than sentences, but --shard makes {self.total} of "
                f"{num_sentences}"
            )
        return Span(
            (self.number - 1) * num_sentences // self.total,
            self.number * num_sentences // self.total,
        )

    def file_of(self, output_file: Path) -> Path:
        """Where the output of this shard lies, `NAME.I-of-N`."""
        return output_file.with_name(f"{output_file.name}.{self.number}-of-{self.total}")
