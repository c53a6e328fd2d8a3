"""What configs can name: the registered classes of the package, their constructors and settings."""

import inspect
import re
import sys
from functools import lru_cache
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple, get_args

from allennlp.commands.subcommand import Subcommand
from allennlp.common import FromParams, Registrable
from allennlp.common.from_params import infer_params
from allennlp.data import DataLoader, DatasetReader, TokenIndexer, Tokenizer, Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder, Seq2VecEncoder
from allennlp.modules.token_embedders import TokenEmbedder
from allennlp.predictors import Predictor
from allennlp.training import Checkpointer, TrainerCallback
from allennlp.training.optimizers import Optimizer

import elmo_scratch.registered  # noqa: F401  (registers everything)
from benchmarks.reference.docstrings import Docstring, Entry, parsed
from elmo_scratch.embedders.layer_cache import LayerStore
from elmo_scratch.modules import LayerMix, OutputSoftmax, TokenEncoder

PACKAGE = "elmo_scratch."


class Kind(NamedTuple):
    """Where a config names classes of a kind, and the arguments that are no settings of theirs."""

    place: str
    supplied: Tuple[str, ...] = ()


KINDS: Dict[type, Kind] = {
    DatasetReader: Kind("`dataset_reader`", ("serialization_dir",)),
    Tokenizer: Kind("`tokenizer` of a reader"),
    TokenIndexer: Kind("`token_indexers` of a reader"),
    Vocabulary: Kind("`vocabulary`"),
    DataLoader: Kind("`data_loader`", ("reader", "data_path")),
    Model: Kind("`model`", ("vocab", "serialization_dir")),
    TokenEncoder: Kind("`token_encoder` of a biLM", ("num_words", "begin_id", "end_id")),
    OutputSoftmax: Kind("`softmax` of a language model", ("num_words", "dim")),
    TokenEmbedder: Kind(
        "`token_embedders` of a model's `text_field_embedder`", ("vocab", "serialization_dir")
    ),
    LayerMix: Kind("`mix` and `output_mix` of an embedder", ("num_layers", "width")),
    LayerStore: Kind("`keep_layers` of an embedder"),
    Seq2SeqEncoder: Kind("`encoder` or `seq2seq_encoder` of a model"),
    Seq2VecEncoder: Kind("`seq2vec_encoder` of a classifier"),
    Checkpointer: Kind("`trainer.checkpointer`", ("serialization_dir",)),
    Optimizer: Kind("`trainer.optimizer`", ("model_parameters",)),
    TrainerCallback: Kind("`trainer.callbacks`", ("serialization_dir",)),
    Predictor: Kind(
        "`--predictor` of `allennlp predict`, its settings in `--predictor-args`",
        ("model", "dataset_reader", "frozen"),
    ),
}
"""In the order of the pages: from a text to a prediction."""

PART = Kind("", ("num_words", "begin_id", "end_id"))
"""Of classes that have no registered name: a config gives their settings where they are used."""


class Registered(NamedTuple):
    """
    A class that a config can name. `name` is `None` where its settings alone are given; then `base`
    is the class itself.
    """

    base: Any
    name: Optional[str]
    cls: Any
    constructor: Callable[..., Any]

    @property
    def kind(self) -> Kind:
        return KINDS.get(self.base, PART)

    @property
    def documented(self) -> Docstring:
        """The docstring of the constructor, where it has one of its own, with that of the class."""
        of_class = parsed(self.cls.__doc__)
        if self.constructor is self.cls.__init__:
            return of_class
        own = parsed(self.constructor.__doc__)
        if not own.parameters:
            return of_class
        texts = [text for text in (own.text, of_class.text) if text]
        return Docstring(
            "\n\n".join(texts), {**of_class.parameters, **own.parameters}, of_class.source
        )


class Setting(NamedTuple):
    """
    An argument that a config can give. `default` is `inspect.Parameter.empty` where there is none.
    `entry` is `None` where only the class `origin`, which is not of this package, documents it.
    """

    name: str
    annotation: Any
    default: Any
    entry: Optional[Entry]
    origin: Optional[type]


def registered(base: type) -> List[Registered]:
    """The classes of the package that are registered for `base`, by their names."""
    return [
        Registered(base, name, cls, getattr(cls, constructor) if constructor else cls.__init__)
        for name, (cls, constructor) in sorted(Registrable._registry[base].items())
        if cls.__module__.startswith(PACKAGE)
    ]


def all_registered() -> List[Registered]:
    """All of them but subcommands, in the order of `KINDS`."""
    others = {base for base in Registrable._registry if registered(base)} - {*KINDS, Subcommand}
    if others:
        raise LookupError(f"expected a place in KINDS for {sorted(map(str, others))}")
    return [one for base in KINDS for one in registered(base)]


@lru_cache(maxsize=None)
def parts() -> Tuple[Registered, ...]:
    """The classes of the package without a name that the settings of others are made of."""
    found: Dict[type, Registered] = {}
    for one in all_registered():
        for setting in settings(one):
            for cls in _classes_in(setting.annotation):
                is_ours = cls.__module__.startswith(PACKAGE) and issubclass(cls, FromParams)
                if is_ours and cls not in KINDS:
                    found[cls] = Registered(cls, None, cls, cls.__init__)
    return tuple(found.values())


def taken_over(one: Registered) -> Optional[Registered]:
    """The class whose settings `one` takes too, because it makes that class in its own place."""
    made = inspect.signature(one.constructor).return_annotation
    for other in registered(one.base) if one.name is not None else []:
        if other.cls is made and made is not one.cls and not issubclass(one.cls, made):
            return other
    return None


def settings(one: Registered) -> List[Setting]:
    """What a config can give to `one`, by AllenNLP's own rules, its own arguments first."""
    documented, other = one.documented, taken_over(one)
    elsewhere: Set[str] = set()
    if other is not None:
        elsewhere = {*infer_params(other.cls)} - {*documented.parameters}
    own: List[Setting] = []
    inherited: List[Setting] = []
    for name, parameter in infer_params(one.cls, one.constructor).items():
        is_rest = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if is_rest or name in {"self", *one.kind.supplied, *elsewhere}:
            continue
        entry, origin = _documentation(name, one, documented)
        setting = Setting(name, parameter.annotation, parameter.default, entry, origin)
        (own if entry is not None else inherited).append(setting)
    return own + inherited


def _documentation(
    name: str, one: Registered, documented: Docstring
) -> Tuple[Optional[Entry], Optional[type]]:
    """
    What is said of an argument by `one`, its bases in the package, or what these point at, or else
    the base outside of the package that it is an argument of.
    """
    found = documented.parameters.get(name)
    for cls in one.cls.__mro__[1:]:
        is_pointer = found is None or found.text.startswith("See `")
        if not is_pointer:
            break
        if cls.__module__.startswith(PACKAGE):
            found = parsed(cls.__doc__).parameters.get(name, found)
        elif found is None and name in inspect.signature(cls.__init__).parameters:
            return None, cls
    if found is None:
        raise LookupError(f"{one.cls.__name__}: # Parameters lacks {name!r}")
    pointed = re.match(r"See `(\w+)\.(\w+)`", found.text)
    if pointed:
        for there in _classes_named(pointed[1]):
            entry = parsed(getattr(there, pointed[2]).__doc__).parameters.get(name)
            return entry and entry._replace(default=found.default or entry.default), None
    return found, None


def _classes_named(name: str) -> Iterator[type]:
    for module in [one for key, one in sys.modules.items() if key.startswith(PACKAGE)]:
        cls = vars(module).get(name)
        if isinstance(cls, type):
            yield cls


def _classes_in(annotation: Any) -> Iterator[type]:
    """Yields the classes that an annotation such as `Optional[Lazy[LayerMix]]` names."""
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for inner in get_args(annotation):
        yield from _classes_in(inner)
