"""The sizes and words of a biLM, kept in a task's archive, and what a later training changes."""

from copy import deepcopy
from dataclasses import asdict, dataclass, fields
from os import PathLike
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Union

import torch
from allennlp.common import FromParams, Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_scratch.alphabet import BEGIN_SENTENCE_WORD, END_SENTENCE_WORD
from elmo_scratch.interop.archives.sidecar import archived_path, keep_in_archive, kept_in_archive
from elmo_scratch.modules import BiLm


@dataclass(frozen=True)
class BiLmChanges(FromParams):
    """
    Settings that a training may change against the training before. `None` leaves a setting as it
    was; official files store none of them, so `BiLm`'s default applies there.

    # Parameters

    dropout, recurrent_dropout : `float`, optional (default = `None`)
        Dropout probabilities, see `BiLm`.
    state, matmul_dtype : `str`, optional (default = `None`)
        See `BiLm`.
    sparse : `bool`, optional (default = `None`)
        For a biLM of words, see `WordEncoder`. It belongs to the optimizer: a biLM that is read
        from an archive has `False`, whatever it was trained with.
    """

    dropout: Optional[float] = None
    recurrent_dropout: Optional[float] = None
    state: Optional[str] = None
    matmul_dtype: Optional[str] = None
    sparse: Optional[bool] = None

    def of(self, config: Dict[str, Any]) -> Dict[str, Any]:
        """Applies the changes to the configuration of a biLM."""
        changes = {key: value for key, value in asdict(self).items() if value is not None}
        sparse = changes.pop("sparse", None)
        if sparse is not None:
            changes["token_encoder"] = {**config["token_encoder"], "sparse": sparse}
        return {**config, **changes}


NO_CHANGES = BiLmChanges()


def dense(config: Dict[str, Any]) -> Dict[str, Any]:
    """The configuration of a biLM without `sparse`."""
    encoder = config.get("token_encoder")
    if not isinstance(encoder, dict):
        return config
    return {**config, "token_encoder": _without(["sparse"], encoder)}


def has_same_weights(one: Dict[str, Any], other: Dict[str, Any]) -> bool:
    """
    Whether two configurations of a biLM differ at most in settings that `BiLmChanges` can change.
    """
    changeable = [field.name for field in fields(BiLmChanges)]
    return _without(changeable, dense(one)) == _without(changeable, dense(other))


def _without(keys: Iterable[str], config: Dict[str, Any]) -> Dict[str, Any]:
    """A configuration without the settings `keys`."""
    return {key: value for key, value in config.items() if key not in keys}


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
        Takes the words of a namespace of a language model's vocabulary. Adds boundary marks to the
        namespace if it lacks them. Raises `ConfigurationError` if there is no such namespace, or if
        it has no unknown word.
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
        return self._ids[self.unknown_word]

    def sizes(self) -> Dict[str, int]:
        """
        The arguments that the token encoders and softmaxes of `modules` need about a vocabulary.
        """
        return {
            "num_words": len(self.words),
            "begin_id": self._ids[BEGIN_SENTENCE_WORD],
            "end_id": self._ids[END_SENTENCE_WORD],
        }

    def ids_from(self, vocab: Vocabulary, namespace: str) -> torch.Tensor:
        """
        A table from the ids of a task's vocabulary to ids of this list; unknown words get
        `unknown_id`. Shape `(words of the namespace,)`.
        """
        by_id = vocab.get_index_to_token_vocabulary(namespace)
        return torch.tensor(
            [self._ids.get(by_id[number], self.unknown_id) for number in range(len(by_id))],
            dtype=torch.long,
        )

    def ids_in(self, other: "WordList") -> torch.Tensor:
        """
        A table from the ids of this list to ids of another biLM's list, or -1 for missing words.
        Shape `(words,)`. Padding and the unknown word correspond whatever their spelling.
        """
        ids = [other._ids.get(word, -1) for word in self.words]
        ids[0] = 0
        ids[self.unknown_id] = other.unknown_id
        return torch.tensor(ids, dtype=torch.long)

    def count_known(self, vocab: Vocabulary, namespace: str) -> int:
        """How many words of a namespace of `vocab` are in this list."""
        return sum(word in self._ids for word in vocab.get_token_to_index_vocabulary(namespace))


class BiLmBlueprint(NamedTuple):
    """
    The configuration and the words of a biLM. A task's archive stores it beside the vocabulary, so
    that the archive can be loaded when the biLM's own archive no longer exists.

    # Parameters

    config : `Dict[str, Any]`
        The `bilm` block of the language model's config.
    words : `WordList`
        The vocabulary it was trained with.
    """

    config: Dict[str, Any]
    words: WordList

    def build(self) -> BiLm:
        """Builds the biLM with fresh random weights."""
        sizes: Dict[str, Any] = dict(self.words.sizes())
        return BiLm.from_params(Params(deepcopy(self.config)), **sizes)

    def write(self, serialization_dir: Union[str, PathLike], name: str) -> None:
        """
        Writes the blueprint to where AllenNLP packs it into the archive of the training. `name`
        tells several biLMs of one model apart. Raises `ConfigurationError` if the folder holds the
        blueprint of another biLM by this name.
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
        Reads the blueprint that `write` put into a folder; raises `ConfigurationError` if there is
        none.
        """
        plan = kept_in_archive(serialization_dir, f"_{name}")
        if plan is None:
            raise ConfigurationError(
                f"{archived_path(serialization_dir, f'_{name}')}: there is no such file. A biLM is "
                "built from a trained archive, named by `pretrained_file`, or from the blueprint "
                "that a training keeps in the folder `vocabulary` of its own archive."
            )
        return cls(plan["bilm"], WordList(plan["words"], plan["unknown_word"]))
