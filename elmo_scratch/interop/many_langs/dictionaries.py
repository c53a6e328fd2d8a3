"""The dictionaries of ELMoForManyLangs, `word.dic` and `char.dic`, and the ids that they give."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Sequence

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.spelling import SpellingWordIndexer
from elmo_scratch.files.paths import local_file

UNKNOWN, PADDING = "<oov>", "<pad>"
BEGIN_SENTENCE, END_SENTENCE = "<bos>", "<eos>"

BEGIN_WORD, END_WORD = "<eow>", "<bow>"
"""Words were spelled with the two marks exchanged when the models were trained."""

WORD_MARKS = (UNKNOWN, PADDING)
CHARACTER_MARKS = (UNKNOWN, PADDING, BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD)
"""The entries without which a dictionary is of no use."""

WHITE_SPACE = "\u3000"
"""The entry of a line whose word is white space, which is stripped from lines."""

_NUMBER = re.compile("[0-9]{1,9}")


def read_dictionary(path: Path, marks: Sequence[str]) -> Dict[str, int]:
    """
    Reads a file with a word or character, a tab and a number on each line. Returns ids that are one
    higher than the numbers: 0 stands for no word or character. Raises `ConfigurationError` if a
    line is something else, the numbers are not those from 0 on, or one of `marks` is missing.
    """
    numbers: Dict[int, int] = {}
    ids: Dict[str, int] = {}
    with open(local_file(path), "rb") as file:
        for place, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8").strip()
            except UnicodeDecodeError:
                raise ConfigurationError(
                    f"{path}, line {place}: expected UTF-8 text, but got {raw[:80]!r}"
                ) from None
            entry, tab, number = line.rpartition("\t")
            if "\t" in entry or not _NUMBER.fullmatch(number):
                raise ConfigurationError(
                    f"{path}, line {place}: expected a word or character, a tab and its number, "
                    f"but got {line[:80]!r}"
                )
            other = numbers.setdefault(int(number), place)
            if other != place:
                raise ConfigurationError(
                    f"{path}, line {place}: expected a number of its own, but line {other} has "
                    f"{number} too"
                )
            ids[entry if tab else WHITE_SPACE] = 1 + int(number)
    if not numbers:
        raise ConfigurationError(f"{path}: expected words or characters, but it is empty")
    last = max(numbers)
    if last != len(numbers) - 1:
        raise ConfigurationError(
            f"{path}: expected the numbers from 0 to {len(numbers) - 1} on its {len(numbers)} "
            f"lines, but the highest is {last}. Is the file whole?"
        )
    for mark in marks:
        if mark not in ids:
            raise ConfigurationError(
                f"{path}: expected a line for {mark}, which every such model has, but there is none"
            )
    return ids


def kept_dictionary(
    ids: Optional[Dict[str, int]], marks: Sequence[str]
) -> Optional[Dict[str, int]]:
    """Returns a dictionary that an archive keeps; raises `ValueError` if it can't be one."""
    if ids is not None:
        missing = [mark for mark in marks if mark not in ids]
        if missing or not all(type(number) is int and number > 0 for number in ids.values()):
            raise ValueError(f"expected ids above 0 of entries such as {', '.join(marks)}")
    return ids


@dataclass(frozen=True)
class DictionaryWordIndexer(SpellingWordIndexer):
    """
    Spells a word as its id, if there are `words`, then the ids of its Unicode characters between
    two marks, padded to `max_characters`, if there are `characters`. Of a longer word only the
    beginning counts, for the table of words too; without `max_characters` words are never cut.
    """

    words: Optional[Dict[str, int]]
    characters: Optional[Dict[str, int]]
    max_characters: Optional[int]

    def spelled(self, words: Collection[str]) -> torch.Tensor:
        rows = [self.ids_of(word) for word in words]
        num_ids = len(rows[0]) if rows else len(self.ids_of(""))
        return torch.tensor(rows, dtype=torch.int32, device="cpu").view(len(rows), num_ids)

    def ids_of(self, word: str) -> List[int]:
        """The ids of a word."""
        if self.max_characters is not None:
            word = word[: self.max_characters - 2]
        ids: List[int] = []
        if self.words is not None:
            ids.append(self.words.get(word, self.words[UNKNOWN]))
        if self.characters is not None and self.max_characters is not None:
            known, unknown = self.characters, self.characters[UNKNOWN]
            is_mark = word in (BEGIN_SENTENCE, END_SENTENCE)
            within = [known[word]] if is_mark else [known.get(letter, unknown) for letter in word]
            spelled = [known[BEGIN_WORD], *within, known[END_WORD]]
            ids += spelled + [known[PADDING]] * (self.max_characters - len(spelled))
        return ids
