"""The words of a biLM in the order of the official files."""

from typing import List, NamedTuple

import torch

from elmo_scratch.data.vocabulary_file import MARKS, UNKNOWN_WORD, is_writable
from elmo_scratch.interop.archives.word_list import WordList
from elmo_scratch.interop.official.reading import MARK_IDS
from elmo_scratch.modules.token_encoders import WordEncoder


class OfficialWords(NamedTuple):
    """
    The words of `vocab.txt`, made by `OfficialWords.of`.

    # Parameters

    words : `List[str]`
        `<S>`, `</S>` and `<UNK>`, then all others in the order of their ids.
    ids : `List[int]`
        Their ids in the biLM.
    left_out : `List[str]`
        Words that a vocabulary file can't hold.
    """

    words: List[str]
    ids: List[int]
    left_out: List[str]

    @classmethod
    def of(cls, words: WordList) -> "OfficialWords":
        """Of the words of a biLM, padding first, whatever they call the unknown word."""
        sizes = words.sizes()
        first = (sizes["begin_id"], sizes["end_id"], words.unknown_id)
        official, left_out = cls(list(MARKS), list(first), []), []
        for number, word in enumerate(words.words[1:], start=1):
            if number in first:
                continue
            # A text may hold the word `<UNK>` itself, where the unknown word is called otherwise.
            if word == UNKNOWN_WORD or not is_writable(word):
                left_out.append(word)
            else:
                official.words.append(word)
                official.ids.append(number)
        return official._replace(left_out=left_out)

    def reordered(self, encoder: WordEncoder) -> WordEncoder:
        """An encoder of the same vectors, whose ids are the places in `words`, plus one."""
        ordered = WordEncoder(
            dim=encoder.dim,
            num_words=1 + len(self.words),
            begin_id=MARK_IDS[0],
            end_id=MARK_IDS[1],
        )
        with torch.no_grad():
            ordered.embedding.weight[1:] = encoder.embedding.weight[self.ids]
        return ordered
