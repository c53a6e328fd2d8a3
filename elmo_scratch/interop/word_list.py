"""The words of a biLM, in the order of their ids."""

from typing import Dict, List

import torch
from allennlp.data import Vocabulary

BEGIN_WORD = "<S>"
END_WORD = "</S>"
"""The marks of sentence boundaries, spelled as in the vocabulary files of `bilm-tf`."""


class WordList:
    """
    The vocabulary that a biLM was trained with, apart from the vocabulary of any task.

    # Parameters

    words : `List[str]`
        All words in the order of their ids, AllenNLP's padding and unknown words first and
        `BEGIN_WORD` and `END_WORD` among them.
    unknown_word : `str`
        The word that stands for all others.
    """

    def __init__(self, words: List[str], unknown_word: str) -> None:
        self.words = words
        self.unknown_word = unknown_word
        self._ids = {word: number for number, word in enumerate(words)}

    @classmethod
    def from_vocabulary(cls, vocab: Vocabulary, namespace: str) -> "WordList":
        """
        The words of a namespace. Boundary marks that the namespace lacks are added to it.

        # Parameters

        vocab : `Vocabulary`
            The vocabulary of a language model.
        namespace : `str`
            The namespace of its words.
        """
        for mark in (BEGIN_WORD, END_WORD):
            vocab.add_token_to_namespace(mark, namespace)
        by_id = vocab.get_index_to_token_vocabulary(namespace)
        return cls([by_id[number] for number in range(len(by_id))], vocab._oov_token)

    def sizes(self) -> Dict[str, int]:
        """What the token encoders and softmaxes of `modules` ask about a vocabulary."""
        return {
            "num_words": len(self.words),
            "begin_id": self._ids[BEGIN_WORD],
            "end_id": self._ids[END_WORD],
        }

    def ids_from(self, vocab: Vocabulary, namespace: str) -> torch.Tensor:
        """
        A table that translates the ids of another vocabulary into ids of this list.

        # Parameters

        vocab : `Vocabulary`
            The vocabulary of a task.
        namespace : `str`
            One of its namespaces.

        # Returns

        `torch.Tensor`
            Shape `(words of the namespace,)`: for each the id here, or the unknown word's.
        """
        by_id = vocab.get_index_to_token_vocabulary(namespace)
        unknown = self._ids[self.unknown_word]
        return torch.tensor(
            [self._ids.get(by_id[number], unknown) for number in range(len(by_id))],
            dtype=torch.long,
        )

    def count_known(self, vocab: Vocabulary, namespace: str) -> int:
        """How many words of a namespace of `vocab` are in this list."""
        return sum(word in self._ids for word in vocab.get_token_to_index_vocabulary(namespace))
