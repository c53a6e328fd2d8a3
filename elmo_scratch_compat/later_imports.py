"""What AllenNLP imports at once, and few programs use."""

import builtins
import sys
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence, Tuple

CLASSIFICATION = "allennlp_models.classification.dataset_readers"
STRUCTURE = "allennlp_models.structured_prediction"
LATER: Dict[str, Tuple[str, ...]] = {
    "allennlp.data.data_loaders.data_collator": ("transformers.data.data_collator",),
    "allennlp.fairness.bias_direction": ("sklearn",),
    "allennlp.fairness.bias_mitigators": ("sklearn",),
    "allennlp.fairness.fairness_metrics": ("scipy.stats",),
    "allennlp.training.metrics.auc": ("sklearn",),
    "allennlp.training.metrics.evalb_bracketing_scorer": ("nltk",),
    "allennlp.training.metrics.spearman_correlation": ("scipy.stats",),
    f"{CLASSIFICATION}.stanford_sentiment_tree_bank": ("nltk.tree",),
    "allennlp_models.common.ontonotes": ("nltk",),
    "allennlp_models.coref.metrics.conll_coref_scores": ("scipy.optimize",),
    "allennlp_models.generation.dataset_readers.cnn_dm": ("ftfy",),
    "allennlp_models.rc.tools.drop": ("scipy.optimize",),
    "allennlp_models.rc.tools.narrativeqa": (
        "nltk.tokenize",
        "nltk.translate.bleu_score",
        "nltk.translate.meteor_score",
    ),
    f"{STRUCTURE}.dataset_readers.penn_tree_bank": (
        "nltk.corpus.reader.bracket_parse",
        "nltk.tree",
    ),
    f"{STRUCTURE}.models.constituency_parser": ("nltk",),
    f"{STRUCTURE}.predictors.constituency_parser": ("nltk",),
}
"""
What modules of AllenNLP import at once and use later, if at all. With what that imports in turn,
such as pandas, it took a third of the time in which a command starts.
"""


class Later:
    """Stands for a class, a function or an object that is made, or imported, when it is used."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._made = lru_cache(maxsize=None)(make)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._made()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._made(), name)

    def __instancecheck__(self, thing: Any) -> bool:
        return isinstance(thing, self._made())

    def __subclasscheck__(self, kind: Any) -> bool:
        return issubclass(kind, self._made())

    def __mro_entries__(self, bases: Tuple[Any, ...]) -> Tuple[Any]:
        return (self._made(),)


class LaterModule:
    """Stands for a module whose names are wanted: each is one that is imported when it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Later(partial(_found, self._name, name))


def _found(module: str, name: str) -> Any:
    """What a module has by this name, which may be a module too."""
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        return import_module(f"{module}.{name}")


@contextmanager
def imported_when_used(importing: str, modules: Tuple[str, ...]) -> Iterator[None]:
    """
    In the block, the module `importing`, and no other one, gets stand-ins for the names that it
    imports from these modules, if they are not imported yet.
    """
    original = builtins.__import__

    def import_or_stand_in(
        name: str,
        globals: Optional[Mapping[str, object]] = None,
        locals: Optional[Mapping[str, object]] = None,
        fromlist: Optional[Sequence[str]] = (),
        level: int = 0,
    ) -> Any:
        is_asked_by_it = globals is not None and globals.get("__name__") == importing
        if is_asked_by_it and name in modules and name not in sys.modules:
            # As `import a.b` gives `a`, and `from a.b import c` gives `a.b`.
            return LaterModule(name if fromlist else name.partition(".")[0])
        return original(name, globals, locals, fromlist, level)

    builtins.__import__ = import_or_stand_in
    try:
        yield
    finally:
        builtins.__import__ = original


@contextmanager
def modules_replaced(stand_ins: Mapping[str, Any]) -> Iterator[None]:
    """
    In the block, these modules stand for those that have their names; `None` stands for one that is
    not installed.
    """
    before = {name: sys.modules[name] for name in stand_ins if name in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            # One that was used has given its place to the module.
            if sys.modules.get(name) is stand_in:
                sys.modules.pop(name, None)
                sys.modules.update({name: before[name]} if name in before else {})


class _StandIn(ModuleType):
    """Stands for a module, which is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def import_when_used(module: Any) -> Iterator[None]:
    """
    `import allennlp` imports both, for the order in which some systems want libraries to be loaded
    and which they get from PyTorch, and `allennlp.common` names three things of spaCy's. They take
    a second of a processor. Here AllenNLP gets what imports them when it is used; for all others
    they are as absent as before. What is imported already is left alone.
    """

    def download(*names: Any, **settings: Any) -> Any:
        return import_module("spacy.cli.download").download(*names, **settings)

    stand_ins = {"transformers": _StandIn("transformers")}
    if "spacy" not in sys.modules:
        for name in ("spacy", "spacy.cli", "spacy.cli.download", "spacy.language"):
            stand_ins[name] = _StandIn(name)
        stand_ins["spacy.cli.download"].__dict__["download"] = download
        stand_ins["spacy.language"].__dict__["Language"] = Any  # for annotations alone
    absent = {name: one for name, one in stand_ins.items() if name not in sys.modules}
    with modules_replaced(absent):
        yield
