"""All it takes to build a biLM again, but its weights."""

from copy import deepcopy
from os import PathLike
from typing import Any, Dict, NamedTuple, Union

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.archives.archived_json import (
    archived_path,
    keep_in_archive,
    kept_in_archive,
)
from elmo_scratch.interop.archives.word_list import WordList
from elmo_scratch.modules import BiLm


class BiLmBlueprint(NamedTuple):
    """
    The configuration and the words of a biLM. A task's archive keeps it beside the vocabulary, so
    that the archive can be loaded where the biLM's own archive is no more.

    # Parameters

    config : `Dict[str, Any]`
        The `bilm` block of the language model's config.
    words : `WordList`
        The vocabulary it was trained with.
    """

    config: Dict[str, Any]
    words: WordList

    def build(self) -> BiLm:
        """A biLM of this plan with fresh random weights."""
        sizes: Dict[str, Any] = dict(self.words.sizes())
        return BiLm.from_params(Params(deepcopy(self.config)), **sizes)

    def write(self, serialization_dir: Union[str, PathLike], name: str) -> None:
        """
        Puts the blueprint where AllenNLP packs it into the archive of the training.

        # Parameters

        serialization_dir : `Union[str, PathLike]`
            The output folder of a training.
        name : `str`
            Tells several biLMs of one model apart.

        # Raises

        ConfigurationError
            If the folder holds the blueprint of another biLM by this name.
        """
        plan = {
            "bilm": self.config,
            "words": self.words.words,
            "unknown_word": self.words.unknown_word,
        }
        if kept_in_archive(serialization_dir, f"_{name}") not in (None, plan):
            raise ConfigurationError(
                f"{archived_path(serialization_dir, f'_{name}')}: holds the words of another biLM "
                "already. Give each biLM of a model, and the indexer of its words, a `namespace` "
                "of its own."
            )
        keep_in_archive(serialization_dir, f"_{name}", plan)

    @classmethod
    def read(cls, serialization_dir: Union[str, PathLike], name: str) -> "BiLmBlueprint":
        """
        The blueprint that `write` put into a folder.

        # Raises

        ConfigurationError
            If there is none.
        """
        plan = kept_in_archive(serialization_dir, f"_{name}")
        if plan is None:
            raise ConfigurationError(
                f"{archived_path(serialization_dir, f'_{name}')}: there is no such file. A biLM is "
                "built from a trained archive, named by `pretrained_file`, or from the blueprint "
                "that a training keeps in the folder `vocabulary` of its own archive."
            )
        return cls(plan["bilm"], WordList(plan["words"], plan["unknown_word"]))
