"""Whether HDF5 has room for the map from the sentences of a text to their keys."""

from pathlib import Path

from allennlp.common.checks import ConfigurationError

from elmo_scratch.export.text import InputText
from elmo_scratch.interop.layer_files.sentence_map import LONGEST_STRING, IndexText

LONGEST_ESCAPE = 6
"""Bytes that JSON makes of one byte of UTF-8, at most."""

BYTES_AN_ENTRY = 32
"""Of its key, quotation marks and separators, at most."""


def check_index(text: InputText, folder: Path, limit: int = LONGEST_STRING) -> None:
    """
    Complains before the work rather than after it.

    # Parameters

    text : `InputText`
        The whole text.
    folder : `Path`
        Where there is room for the map.
    limit : `int`, optional (default = `LONGEST_STRING`)
        How many bytes it may have.

    # Raises

    ConfigurationError
        If the map has more.
    """
    at_most = LONGEST_ESCAPE * text.num_bytes + BYTES_AN_ENTRY * text.num_sentences
    if at_most <= limit:
        return
    sentences = ((line, str(number)) for number, line, _ in text.sentences())
    with IndexText.of(sentences, folder) as index:
        if index.size > limit:
            raise ConfigurationError(
                f"{text.name}: the map from its sentences to keys would have {index.size} bytes, "
                f"but HDF5 allows no more than {limit}. Leave it out with --forget-sentences."
            )
