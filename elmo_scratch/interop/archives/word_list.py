"""The words of a biLM, in the order of their ids."""

from typing import Dict, List

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_scratch.alphabet import BEGIN_SENTENCE_WORD, END_SENTENCE_WORD


class WordList:
    """
    The vocabulary that a biLM was trained with, apart from the vocabulary of any task.

    # Parameters

    words : `List[str]`
        All words in the order of their ids, AllenNLP's padding first, `unknown_word` among them,
        and for a biLM also `BEGIN_SENTENCE_WORD` and `END_SENTENCE_WORD`.
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

        # Raises

        ConfigurationError
            If the vocabulary has no such namespace, or that no unknown word.
        """
        if namespace not in vocab.get_namespaces():
            raise ConfigurationError(
                f"expected the words of the biLM in the namespace {namespace!r} of the vocabulary, "
                f"but there are {sorted(vocab.get_namespaces())}. Give the model, the vocabulary "
                "and the indexer of words the same `namespace`."
            )
        for mark in (BEGIN_SENTENCE_WORD, END_SENTENCE_WORD):
            vocab.add_token_to_namespace(mark, namespace)
        by_id = vocab.get_index_to_token_vocabulary(namespace)
        if vocab._oov_token not in by_id.values():
            raise ConfigurationError(
                f"expected the word {vocab._oov_token!r}, which stands for all unknown ones, among "
                f"the words of the namespace {namespace!r}, but it is missing"
            )
        return cls([by_id[number] for number in range(len(by_id))], vocab._oov_token)

    @property
    def unknown_id(self) -> int:
        """The id of `unknown_word`."""
        return self._ids[self.unknown_word]

    def sizes(self) -> Dict[str, int]:
        """What the token encoders and softmaxes of `modules` ask about a vocabulary."""
        return {
            "num_words": len(self.words),
            "begin_id": self._ids[BEGIN_SENTENCE_WORD],
            "end_id": self._ids[END_SENTENCE_WORD],
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
        return torch.tensor(
            [self._ids.get(by_id[number], self.unknown_id) for number in range(len(by_id))],
            dtype=torch.long,
        )

    def ids_in(self, other: "WordList") -> torch.Tensor:
        """
        # Parameters

        other : `WordList`
            The words of another biLM.

        # Returns

        `torch.Tensor`
            Shape `(words,)`: for each word here the id of the same one there, or -1. Padding and
            the unknown word are the same whatever their spelling.
        """
        ids = [other._ids.get(word, -1) for word in self.words]
        ids[0] = 0
        ids[self.unknown_id] = other.unknown_id
        return torch.tensor(ids, dtype=torch.long)

    def count_known(self, vocab: Vocabulary, namespace: str) -> int:
        """How many words of a namespace of `vocab` are in this list."""
        return sum(word in self._ids for word in vocab.get_token_to_index_vocabulary(namespace))
