"""All it takes to build a biLM again, but its weights."""

import json
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any, Dict, NamedTuple, Union

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.word_list import WordList
from elmo_scratch.modules import BiLm
from elmo_scratch.whole_file import whole_file


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
        path = _blueprint_path(serialization_dir, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        plan = {
            "bilm": self.config,
            "words": self.words.words,
            "unknown_word": self.words.unknown_word,
        }
        text = json.dumps(plan, ensure_ascii=False)
        if path.exists() and path.read_text(encoding="utf-8") != text:
            raise ConfigurationError(
                f"{path}: holds the words of another biLM already. Give each biLM of a model, and "
                "the indexer of its words, a `namespace` of its own."
            )
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, serialization_dir: Union[str, PathLike], name: str) -> "BiLmBlueprint":
        """
        The blueprint that `write` put into a folder.

        # Raises

        ConfigurationError
            If there is none.
        """
        path = _blueprint_path(serialization_dir, name)
        try:
            plan = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigurationError(
                f"{path}: there is no such file. A biLM is built from a trained archive, named by "
                "`pretrained_file`, or from the blueprint that a training keeps in the folder "
                "`vocabulary` of its own archive."
            ) from None
        return cls(plan["bilm"], WordList(plan["words"], plan["unknown_word"]))


def _blueprint_path(serialization_dir: Union[str, PathLike], name: str) -> Path:
    """
    AllenNLP archives the whole folder `vocabulary` and takes every file in it for a namespace, but
    for those whose names begin with a dot.
    """
    return Path(serialization_dir, "vocabulary", f".elmo_scratch_{name}.json")
