"""The sizes, words and word ids of a biLM, kept in a task's archive for a later training."""

from copy import deepcopy
from dataclasses import asdict, dataclass, fields
from os import PathLike
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    NamedTuple,
    Optional,
    Tuple,
    Union,
)

import torch
from allennlp.common import FromParams, Params
from allennlp.common.checks import ConfigurationError
from torch.overrides import TorchFunctionMode

from elmo_scratch.alphabet import BEGIN_SENTENCE_WORD, END_SENTENCE_WORD
from elmo_scratch.data.vocabulary_file import MARKS, UNKNOWN_WORD
from elmo_scratch.interop.archives.sidecar import (
    archived_path,
    keep_in_archive,
    kept_in_archive,
    reading_kept,
)
from elmo_scratch.kernels import MixedPrecision
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder, WordEncoder

if TYPE_CHECKING:
    # It takes seconds to import, and whoever reads a model folder has none.
    from allennlp.data import Vocabulary
from itertools import chain

from elmo_scratch.data.spelling import IndexedBatch, Sentences, WordIndexer, words_of


@dataclass(frozen=True)
class BiLmChanges(FromParams):
    """
    Settings that a training may change against the training before. `None` leaves a setting as it
    was; official files store none of them, so `BiLm`'s default applies there.

    # Parameters

    dropout, recurrent_dropout, word_dropout : `float`, optional (default = `None`)
        Dropout probabilities, see `BiLm`.
    recurrent_weight_dropout : `float`, optional (default = `None`)
        Likewise.
    locked_dropout : `bool`, optional (default = `None`)
        See `BiLm`.
    state, matmul_dtype : `str`, optional (default = `None`)
        See `BiLm`.
    sparse : `bool`, optional (default = `None`)
        For a biLM of words, see `WordEncoder`. It belongs to the optimizer: a biLM that is read
        from an archive has `False`, whatever it was trained with.
    """

    dropout: Optional[float] = None
    recurrent_dropout: Optional[float] = None
    recurrent_weight_dropout: Optional[float] = None
    word_dropout: Optional[float] = None
    locked_dropout: Optional[bool] = None
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
    def from_vocabulary(cls, vocab: "Vocabulary", namespace: str) -> "WordList":
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

    def id_of(self, word: str) -> int:
        """The id of a word, or of the unknown word in its place."""
        return self._ids.get(word, self.unknown_id)

    def sizes(self) -> Dict[str, int]:
        """
        The arguments that the token encoders and softmaxes of `modules` need about a vocabulary.
        """
        return {
            "num_words": len(self.words),
            "begin_id": self._ids[BEGIN_SENTENCE_WORD],
            "end_id": self._ids[END_SENTENCE_WORD],
        }

    def ids_from(self, vocab: "Vocabulary", namespace: str) -> torch.Tensor:
        """
        A table from the ids of a task's vocabulary to ids of this list; unknown words get
        `unknown_id`. Shape `(words of the namespace,)`.
        """
        by_id = vocab.get_index_to_token_vocabulary(namespace)
        return torch.tensor(
            [self.id_of(by_id[number]) for number in range(len(by_id))],
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

    def count_known(self, vocab: "Vocabulary", namespace: str) -> int:
        """How many words of a namespace of `vocab` are in this list."""
        return sum(word in self._ids for word in vocab.get_token_to_index_vocabulary(namespace))


TOKEN_ENCODERS: Dict[str, Any] = {"char_cnn": CharCnnEncoder, "word": WordEncoder}
"""The token encoders that every installation has, by their registered names."""

DRAWING = (torch.Tensor.normal_, torch.Tensor.uniform_)
"""Methods by which modules draw weights, beside the functions of `torch.nn.init`."""


class WithoutDrawing(TorchFunctionMode):
    """
    A context in which no weights are drawn: their numbers are undefined until they are loaded.
    Where they have shapes alone, PyTorch would import its compiler for drawing, which takes
    seconds.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Tuple[Any, ...] = (),
        kwargs: Optional[Dict[str, Any]] = None,
    ) -> Any:
        if func in DRAWING or getattr(func, "__module__", "") == torch.nn.init.__name__:
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))


NO_WORDS = WordList(["", *MARKS], UNKNOWN_WORD)
"""The list of a biLM that reads characters and came without words."""


def config_of(bilm: BiLm) -> Dict[str, Any]:
    """
    The `bilm` block of a config that builds a biLM of the same sizes and settings. Raises
    `ValueError` if its token encoder is none of this package's.
    """
    encoder = bilm.token_encoder
    if isinstance(encoder, CharCnnEncoder):
        token_encoder: Dict[str, Any] = {
            "type": "char_cnn",
            "dim": encoder.dim,
            "filters": [list(pair) for pair in encoder.convolution.filters],
            "character_dim": encoder.convolution.embedding.embedding_dim,
            "num_highway": len(encoder.highways),
            "activation": encoder.convolution.activation,
            "max_characters_per_token": encoder.max_characters_per_token,
        }
    elif isinstance(encoder, WordEncoder):
        token_encoder = {"type": "word", "dim": encoder.dim}
    else:
        raise ValueError(
            "expected the token encoder `char_cnn` or `word`, which every installation has, but "
            f"got {type(encoder).__name__}"
        )
    stack = bilm.left_to_right
    layer: Any = stack.layers[0]
    regularization = {
        "locked_dropout": stack.locked_dropout,
        "recurrent_weight_dropout": layer.weight_dropout.p,
        "word_dropout": bilm.word_dropout.p,
    }
    return {
        "token_encoder": token_encoder,
        "cell_size": stack.cell_size,
        "num_layers": len(stack.layers),
        "dropout": stack.dropout.p,
        "recurrent_dropout": layer.recurrent_dropout,
        "cell_clip": stack.cell_clip,
        "projection_clip": stack.projection_clip,
        "use_skip_connections": stack.use_skip_connections,
        "state": bilm.state_memory.state,
        "matmul_dtype": "bfloat16" if MixedPrecision.is_asked_for(bilm) else "float32",
        # Releases that don't know these settings read a model that was trained without them.
        **{name: value for name, value in regularization.items() if value},
    }


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

    def build_plain(self) -> BiLm:
        """
        Builds the biLM as `build` does, if its token encoder is one of `TOKEN_ENCODERS` and its
        config names no other classes, but without what AllenNLP imports for that, which takes
        seconds. Its weights are undefined until they are loaded.
        """
        settings = deepcopy(self.config)
        encoder = settings.pop("token_encoder")
        kind = encoder.pop("type")
        sizes = self.words.sizes() if kind == "word" else {}
        with WithoutDrawing():
            return BiLm(token_encoder=TOKEN_ENCODERS[kind](**encoder, **sizes), **settings)

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
        none, or it is damaged.
        """
        plan = kept_in_archive(serialization_dir, f"_{name}")
        if plan is None:
            raise ConfigurationError(
                f"{archived_path(serialization_dir, f'_{name}')}: there is no such file. A biLM is "
                "built from a trained archive, named by `pretrained_file`, or from the blueprint "
                "that a training keeps in the folder `vocabulary` of its own archive."
            )
        with reading_kept(serialization_dir, f"_{name}"):
            if not all(isinstance(word, str) for word in plan["words"]):
                raise ValueError("expected words, but there is something else")
            return cls(dict(plan["bilm"]), WordList(plan["words"], plan["unknown_word"]))


@dataclass(frozen=True)
class ListedWordIndexer(WordIndexer):
    """
    Makes ids for biLMs of words, as AllenNLP's indexer `single_id` does.

    # Parameters

    words : `WordList`
        The words that the biLM knows. It takes all others for the unknown word.
    lowercase : `bool`
        Whether a word is looked up in lower case.
    """

    words: WordList
    lowercase: bool

    def spell(self, sentences: Sentences) -> IndexedBatch:
        listed = words_of(sentences)
        lengths = [len(sentence) for sentence in listed]
        ids = torch.zeros(len(lengths), max(lengths, default=0), dtype=torch.long, device="cpu")
        batch = IndexedBatch.of(ids, lengths)
        words = chain.from_iterable(listed)
        places = [self.words.id_of(word.lower() if self.lowercase else word) for word in words]
        ids[batch.mask] = torch.tensor(places, dtype=torch.long, device="cpu")
        return batch
