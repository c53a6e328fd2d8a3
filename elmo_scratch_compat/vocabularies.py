"""Vocabularies that are read from files."""

import functools
from typing import Any

UNKNOWN_WORD = "<UNK>"
"""In the vocabulary `elmo_scratch_corpus`."""


def find_unknown_word(vocabulary: Any) -> None:
    """
    Who asks AllenNLP to read a vocabulary must know what its unknown word is called, and AllenNLP
    itself doesn't tell when it recovers a distributed training. Where none is named, and the usual
    one is not there, that of the vocabulary `elmo_scratch_corpus` is tried.
    """
    original = vocabulary.Vocabulary.from_files.__func__

    @functools.wraps(original)
    def from_files(
        cls: Any, directory: Any, padding_token: Any = None, oov_token: Any = None
    ) -> Any:
        words = [oov_token or vocabulary.DEFAULT_OOV_TOKEN]
        if words == [vocabulary.DEFAULT_OOV_TOKEN]:
            words.append(UNKNOWN_WORD)
        for word in words:
            try:
                return original(cls, directory, padding_token, word)
            except AssertionError:
                pass
        raise vocabulary.ConfigurationError(
            f"{directory}: expected a vocabulary with a word that stands for unknown ones, "
            f"{' or '.join(words)}, but a file in it has none. Add a line with it, or name "
            "another by `oov_token`."
        )

    vocabulary.Vocabulary.from_files = classmethod(from_files)
