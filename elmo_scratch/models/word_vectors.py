"""Word vectors that an embedding starts from."""

import logging
from os import PathLike
from typing import Union

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import WordList
from elmo_scratch.interop.static_vectors import read_static_vectors
from elmo_scratch.modules.token_encoders import TokenEncoder, WordEncoder

logger = logging.getLogger(__name__)


def start_words(
    encoder: TokenEncoder, words: WordList, pretrained_file: Union[str, PathLike]
) -> None:
    """
    Copies the vectors of a file, as `read_static_vectors` reads it, to the rows of its words in the
    token encoder `word`. All other words, and the padding, keep their vectors.

    Raises `ConfigurationError` if the encoder reads characters, or the file can't be read, has
    vectors of another size, or has none of the words.
    """
    if not isinstance(encoder, WordEncoder):
        raise ConfigurationError(
            "`pretrained_file` holds word vectors, so it needs the token encoder `word`, but the "
            f"config has {type(encoder).__name__}"
        )
    ids = {word: number for number, word in enumerate(words.words) if number > 0}
    found = read_static_vectors(pretrained_file, ids)
    dim = found.vectors.shape[1]
    if dim != encoder.dim:
        raise ConfigurationError(
            f"{pretrained_file}: expected vectors of {encoder.dim} numbers, the `dim` of the token "
            f"encoder, but they have {dim}. Set the encoder's `dim` to {dim}."
        )
    if not found.words:
        raise ConfigurationError(
            f"{pretrained_file}: it has a vector for none of the {len(ids)} words of the "
            "vocabulary. Are they spelled alike, in lower case or not?"
        )
    rows = torch.tensor([ids[word] for word in found.words])
    with torch.no_grad():
        encoder.embedding.weight[rows] = torch.from_numpy(found.vectors)
    logger.info("%d of %d words start from the vectors in %s", len(rows), len(ids), pretrained_file)
