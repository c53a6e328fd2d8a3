"""Labels of sentences: a text file with one a line."""

from os import PathLike
from typing import List, Optional, Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.lines import text_lines
from elmo_scratch.explore.tokens import ExportedTokens


def read_labels(
    path: Union[str, PathLike], tokens: ExportedTokens, num_lines: Optional[int] = None
) -> List[str]:
    """
    Reads the labels of the sentences of `tokens`, in their order; a blank line is a label too.

    # Parameters

    path : `Union[str, PathLike]`
        A text file with as many lines as the text that was exported.
    tokens : `ExportedTokens`
        The sentences, numbered by the lines of that text.
    num_lines : `int`, optional (default = up to the last sentence of the file of layers)
        How many lines the text has.

    # Raises

    ConfigurationError
        If the file can't be read, has another number of lines, or sentences aren't numbered.
    """
    if not tokens.has_lines:
        raise ConfigurationError(
            f"{tokens.name}: labels are those of lines, but the keys of this file are sentences, "
            "whose order it doesn't know. Export the text without --use-sentence-keys."
        )
    labels = [line.strip() for line in text_lines(path)]
    expected = tokens.num_lines if num_lines is None else num_lines
    if len(labels) != expected:
        raise ConfigurationError(
            f"{path}: expected a label for each of the {expected} lines of the text, but there are "
            f"{len(labels)}. Write one a line, blank where there is none."
        )
    return [labels[number] for number in tokens.numbers]
