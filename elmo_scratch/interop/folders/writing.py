"""Writes model folders."""

import os
from os import PathLike
from pathlib import Path
from typing import Dict, Optional, Union

import torch
from safetensors.torch import save

from elmo_scratch.data.spelling import CharacterWordIndexer, WordIndexer
from elmo_scratch.files.atomic import atomic_writes, check_folder
from elmo_scratch.interop.archives.blueprint import WordList, config_of
from elmo_scratch.interop.archives.listed_words import ListedWordIndexer
from elmo_scratch.interop.archives.training_facts import NO_FACTS, TrainingFacts
from elmo_scratch.interop.archives.weights import BILM_PREFIX, SOFTMAX_PREFIX, Tensors
from elmo_scratch.interop.folders.card import model_card
from elmo_scratch.interop.folders.config import DTYPES, FolderConfig
from elmo_scratch.interop.folders.reading import (
    CARD_NAME,
    CONFIG_NAME,
    MIXES_PREFIX,
    VOCABULARY_NAME,
    WEIGHTS_NAME,
)
from elmo_scratch.interop.folders.vocabulary import write_words
from elmo_scratch.interop.softmax_and_mixes import NO_SOFTMAX, LoadedMixes, LoadedSoftmax
from elmo_scratch.modules import BiLm

FILES = (WEIGHTS_NAME, VOCABULARY_NAME, CARD_NAME, CONFIG_NAME)
"""The files of a folder; the last one is written last, so that all others are there if it is."""

STATE_MEMORY = "state_memory."
"""The prefix of the warm state among a biLM's tensors: NaN until a text has warmed it up."""


def write_bilm_folder(
    bilm: BiLm,
    folder: Union[str, PathLike],
    *,
    word_indexer: Optional[WordIndexer] = None,
    words: Optional[WordList] = None,
    softmax: LoadedSoftmax = NO_SOFTMAX,
    mixes: Optional[LoadedMixes] = None,
    facts: TrainingFacts = NO_FACTS,
    dtype: str = "float32",
    overwrite: bool = False,
) -> None:
    """
    Writes a model folder, whole or not at all, for `read_bilm` and for sharing. No file in it holds
    code.

    # Parameters

    bilm : `BiLm`
        A biLM with the token encoder `char_cnn` or `word`.
    folder : `Union[str, PathLike]`
        The output folder, made if it doesn't exist.
    word_indexer : `WordIndexer`, optional (default = of the biLM's characters)
        The maker of the biLM's ids: needed for a biLM of words.
    words : `WordList`, optional (default = those of `word_indexer`)
        The words that `softmax` scores.
    softmax : `LoadedSoftmax`, optional (default = none)
        The softmax of the language model.
    mixes : `LoadedMixes`, optional (default = `None`)
        The mixes of an `Elmo`.
    facts : `TrainingFacts`, optional (default = none)
        What is known of the training, for the model card.
    dtype : `str`, optional (default = `"float32"`)
        The type that the weights are stored in. With `"float16"` and `"bfloat16"` the file is half
        as large, and the weights are rounded. `read_bilm` reads all of them as float32.
    overwrite : `bool`, optional (default = `False`)
        Replace the files of another biLM there, its model card included.

    # Raises

    ConfigurationError
        If the folder can't be written to, or holds one of the files already.
    OSError
        If the disk is full.
    ValueError
        If a folder can't hold the biLM: its token encoder is another one, its ids are not made by a
        list of words or by characters, or a weight is not finite, also after rounding; or `dtype`
        is another one.
    """
    if dtype not in DTYPES:
        raise ValueError(f"expected `dtype` to be one of {', '.join(DTYPES)}, but got {dtype!r}")
    folder = Path(folder)
    check_folder(folder, FILES, overwrite, "`overwrite=True`")
    lowercase = False
    if isinstance(word_indexer, ListedWordIndexer):
        words, lowercase = word_indexer.words, word_indexer.lowercase
    elif not bilm.token_encoder.reads_characters or not isinstance(
        word_indexer, (CharacterWordIndexer, type(None))
    ):
        raise ValueError(
            "expected ids of words by a list of words, or of characters as "
            "`elmo_scratch_characters` makes them, but got those of "
            f"{type(word_indexer).__name__}, which a model folder can't hold"
        )
    if words is None and softmax.config is not None:
        raise ValueError("expected `words`, those that the softmax scores")
    has_words = softmax.config is not None or isinstance(word_indexer, ListedWordIndexer)
    names = [name for name in FILES if has_words or name != VOCABULARY_NAME]
    tensors = {
        **_named(bilm.state_dict(), BILM_PREFIX, dtype),
        **_named(softmax.tensors, SOFTMAX_PREFIX, dtype),
        **({} if mixes is None else _named(mixes.tensors, MIXES_PREFIX, dtype)),
    }
    config = FolderConfig(
        config_of(bilm),
        lowercase,
        None,
        softmax.config,
        None if mixes is None else mixes.settings,
        dtype,
    )
    with atomic_writes(folder, names) as temporary:
        if has_words:
            assert words is not None
            vocabulary = write_words(words, temporary / VOCABULARY_NAME)
            # A biLM of words reads them as it predicts them, which the config's `tokens` say.
            predicts_lowercase = softmax.lowercase and bilm.token_encoder.reads_characters
            vocabulary = vocabulary._replace(lowercase=predicts_lowercase)
            config = config._replace(vocabulary=vocabulary)
        (temporary / WEIGHTS_NAME).write_bytes(save(tensors, metadata={"format": "pt"}))
        card = model_card(bilm, config, facts, Path(os.path.realpath(folder)).name)
        (temporary / CARD_NAME).write_text(card, encoding="utf-8")
        (temporary / CONFIG_NAME).write_text(config.to_json(), encoding="utf-8")
    if not has_words:
        # The biLM that was replaced may have left one.
        (folder / VOCABULARY_NAME).unlink(missing_ok=True)


def _named(tensors: Tensors, prefix: str, dtype: str) -> Dict[str, torch.Tensor]:
    """
    Returns the tensors of a part by their names in the file, weights rounded to `dtype`. Raises
    `ValueError` if one is not finite.
    """
    named: Dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        number = tensor.detach().cpu().contiguous()
        if number.is_floating_point():
            number = number.float()
            is_weight = not name.startswith(STATE_MEMORY)
            if is_weight and not number.isfinite().all():
                raise ValueError(
                    f"{prefix}{name}: expected finite numbers, but there are others; such weights "
                    "come of a training that diverged"
                )
            number = number.to(getattr(torch, dtype))
            if is_weight and not number.isfinite().all():
                raise ValueError(
                    f"{prefix}{name}: expected numbers that {dtype} can hold, but one is larger. "
                    "Take `dtype` bfloat16 or float32"
                )
        named[f"{prefix}{name}"] = number
    return named
