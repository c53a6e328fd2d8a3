"""
Writes a trained biLM for others: as official files, with its words in the order of the vocabulary
file, or as a model folder.
"""

import logging
from os import PathLike
from pathlib import Path
from typing import List, NamedTuple, Union

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import MAX_CHARACTERS_PER_TOKEN
from elmo_scratch.data.vocabulary_file import (
    MARKS,
    UNKNOWN_WORD,
    is_writable,
    write_vocabulary_file,
)
from elmo_scratch.files.atomic import atomic_writes, check_folder
from elmo_scratch.interop.archives.blueprint import ListedWordIndexer, WordList
from elmo_scratch.interop.folders.reading import WEIGHTS_NAME as MODEL_FOLDER_WEIGHTS
from elmo_scratch.interop.folders.writing import check_model_folder
from elmo_scratch.interop.official.files import write_official_bilm
from elmo_scratch.interop.official.options import MARK_IDS
from elmo_scratch.interop.reading import LoadedBiLm, read_bilm
from elmo_scratch.interop.zipped_models import (
    OPTIONS_NAME,
    SOFTMAX_NAME,
    VOCABULARY_NAME,
    WEIGHTS_NAME,
)
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder, WordEncoder


class OfficialWords(NamedTuple):
    """
    The words of `vocab.txt`, made by `OfficialWords.of`.

    `words` holds `<S>`, `</S>` and `<UNK>`, then all others in the order of their ids; `ids` holds
    their ids in the biLM; `left_out` holds the words that a vocabulary file can't store.
    """

    words: List[str]
    ids: List[int]
    left_out: List[str]

    @classmethod
    def of(cls, words: WordList) -> "OfficialWords":
        """
        Orders the words of a biLM, whatever it calls the unknown word. `words` begins with padding.
        """
        sizes = words.sizes()
        first = (sizes["begin_id"], sizes["end_id"], words.unknown_id)
        official, left_out = cls(list(MARKS), list(first), []), []
        for number, word in enumerate(words.words[1:], start=1):
            if number in first:
                continue
            # A text may hold the word `<UNK>` itself if the unknown word has another name.
            if word == UNKNOWN_WORD or not is_writable(word):
                left_out.append(word)
            else:
                official.words.append(word)
                official.ids.append(number)
        return official._replace(left_out=left_out)

    def reordered(self, encoder: WordEncoder) -> WordEncoder:
        """An encoder with the same vectors, whose ids are the places in `words` plus one."""
        ordered = WordEncoder(
            dim=encoder.dim,
            num_words=1 + len(self.words),
            begin_id=MARK_IDS[0],
            end_id=MARK_IDS[1],
        )
        with torch.no_grad():
            ordered.embedding.weight[1:] = encoder.embedding.weight[self.ids]
        return ordered


logger = logging.getLogger(__name__)

FILES = (WEIGHTS_NAME, VOCABULARY_NAME, OPTIONS_NAME)


def export_bilm(
    model: Union[str, PathLike], folder: Union[str, PathLike], *, overwrite: bool = False
) -> BiLm:
    """
    Writes `options.json`, `weights.hdf5` and `vocab.txt`, all three or none. The vocabulary begins
    with `<S>`, `</S>` and `<UNK>`; the other words follow in the order of their ids. The rows of
    `embedding` in the weights of a biLM of words have the same order. A warning names what the
    files can't express.

    # Parameters

    model : `Union[str, PathLike]`
        A biLM of any kind that `read_bilm` reads.
    folder : `Union[str, PathLike]`
        The output folder, made if it doesn't exist.
    overwrite : `bool`, optional (default = `False`)
        Replace an older export.

    # Returns

    `BiLm`
        What was written.

    # Raises

    ConfigurationError
        If the biLM can't be read or has no official form, or the folder can't be written to or
        holds one of the files already, or others that need their own `vocab.txt`.
    """
    folder = Path(folder)
    others = [name for name in (MODEL_FOLDER_WEIGHTS, SOFTMAX_NAME) if (folder / name).exists()]
    if others:
        raise ConfigurationError(
            f"{folder}: expected a folder without {others[0]}, which needs the words in the order "
            f"that they have in the {VOCABULARY_NAME} there. Choose another folder"
        )
    check_folder(folder, FILES, overwrite, "`--overwrite`")
    read = read_bilm(model)
    official = OfficialWords.of(read.blueprint.words)
    bilm = read.bilm
    for shortcoming in shortcomings(read, official):
        logger.warning("%s: %s", model, shortcoming)
    if isinstance(bilm.token_encoder, WordEncoder):
        bilm.token_encoder = official.reordered(bilm.token_encoder)
    with atomic_writes(folder, FILES) as temporary:
        try:
            write_official_bilm(bilm, temporary)
        except ValueError as error:
            raise ConfigurationError(f"{model}: {error}") from None
        write_vocabulary_file(official.words, temporary / VOCABULARY_NAME)
    return bilm


def shortcomings(read: LoadedBiLm, official: OfficialWords) -> List[str]:
    """
    Lists the properties of a biLM that official files can't store, or that AllenNLP can't read.
    """
    bilm, found = read.bilm, []
    if bilm.state_memory.state == "warm":
        found.append(
            "official files have no place for the `warm` state that each sentence starts from; "
            "other programs start from zeros and carry the state from batch to batch"
        )
    if isinstance(read.word_indexer, ListedWordIndexer) and read.word_indexer.lowercase:
        found.append(
            "the biLM was trained on words in lower case, which official files don't tell; give "
            "other programs text in lower case"
        )
    if official.left_out:
        found.append(
            f"{VOCABULARY_NAME} lacks {len(official.left_out)} words that it can't hold, such as "
            f"{official.left_out[0]!r}; they become unknown words"
        )
    obstacles = _obstacles_to_allennlp(bilm)
    if obstacles:
        found.append(f"AllenNLP can't read it, because {' and '.join(obstacles)}")
    return found


def _obstacles_to_allennlp(bilm: BiLm) -> List[str]:
    """Lists the reasons why AllenNLP's own `Elmo` can't read a biLM."""
    encoder, found = bilm.token_encoder, []
    if not isinstance(encoder, CharCnnEncoder):
        return ["its `Elmo` reads characters, not words"]
    if encoder.max_characters_per_token != MAX_CHARACTERS_PER_TOKEN:
        found.append(
            f"it reads words of {MAX_CHARACTERS_PER_TOKEN} characters, not of "
            f"{encoder.max_characters_per_token}"
        )
    if not bilm.left_to_right.use_skip_connections and bilm.num_layers > 2:
        found.append("it expects skip connections")
    return found


def export_model_folder(
    model: Union[str, PathLike],
    folder: Union[str, PathLike],
    *,
    dtype: str = "float32",
    overwrite: bool = False,
) -> BiLm:
    """
    Writes a model folder with all that came with a biLM: its softmax, its words and, on the model
    card, what is known of its training.

    # Parameters

    model : `Union[str, PathLike]`
        A biLM of any kind that `read_bilm` reads.
    folder : `Union[str, PathLike]`
        The output folder, made if it doesn't exist.
    dtype : `str`, optional (default = `"float32"`)
        The type that the weights are stored in, as in `write_bilm_folder`.
    overwrite : `bool`, optional (default = `False`)
        Replace the files of another biLM there.

    # Returns

    `BiLm`
        What was written.

    # Raises

    ConfigurationError
        If the biLM can't be read, or a model folder can't hold it, or not in this `dtype`; or the
        folder can't be written to or holds one of the files already, or official files.
    """
    check_model_folder(Path(folder), overwrite, "`--overwrite`")
    read = read_bilm(model, with_softmax=True)
    try:
        read.save_pretrained(folder, dtype=dtype, overwrite=overwrite)
    except ValueError as error:
        raise ConfigurationError(f"{model}: {error}") from None
    return read.bilm
