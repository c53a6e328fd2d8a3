"""What AllenNLP imports at once, and few programs use."""

import sys
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, Mapping, Tuple

CLASSIFICATION = "allennlp_models.classification.dataset_readers"
STRUCTURE = "allennlp_models.structured_prediction"
LATER: Dict[str, Tuple[str, ...]] = {
    "allennlp.data.data_loaders.data_collator": (
        "transformers.data.data_collator.DataCollatorForLanguageModeling",
    ),
    "allennlp.fairness.bias_direction": ("sklearn.svm",),
    "allennlp.fairness.bias_mitigators": ("sklearn.svm",),
    "allennlp.fairness.fairness_metrics": ("scipy.stats.wasserstein_distance",),
    "allennlp.training.metrics.auc": ("sklearn.metrics",),
    "allennlp.training.metrics.evalb_bracketing_scorer": ("nltk.Tree",),
    "allennlp.training.metrics.spearman_correlation": ("scipy.stats.spearmanr",),
    f"{CLASSIFICATION}.stanford_sentiment_tree_bank": ("nltk.tree.Tree",),
    "allennlp_models.common.ontonotes": ("nltk.Tree",),
    "allennlp_models.coref.metrics.conll_coref_scores": ("scipy.optimize.linear_sum_assignment",),
    "allennlp_models.generation.dataset_readers.cnn_dm": ("ftfy.fix_text",),
    "allennlp_models.rc.tools.drop": ("scipy.optimize.linear_sum_assignment",),
    "allennlp_models.rc.tools.narrativeqa": (
        "nltk.tokenize.word_tokenize",
        "nltk.translate.bleu_score.sentence_bleu",
        "nltk.translate.meteor_score.meteor_score",
    ),
    f"{STRUCTURE}.dataset_readers.penn_tree_bank": (
        "nltk.corpus.reader.bracket_parse.BracketParseCorpusReader",
        "nltk.tree.Tree",
    ),
    f"{STRUCTURE}.models.constituency_parser": ("nltk.Tree",),
    f"{STRUCTURE}.predictors.constituency_parser": ("nltk.Tree",),
}
"""
What modules of AllenNLP name when they are imported and use later, if at all. To import it, and
what it imports in turn, such as pandas, took a third of the time in which a command starts.
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

    def __mro_entries__(self, bases: Tuple[Any, ...]) -> Tuple[Any]:
        return (self._made(),)


@contextmanager
def names_when_used(names: Tuple[str, ...]) -> Iterator[None]:
    """
    In the block, modules that have not been imported yet have stand-ins, which know these of their
    names, such as `"nltk.Tree"`.
    """
    stand_ins: Dict[str, ModuleType] = {}
    for full in names:
        module, _, name = full.rpartition(".")
        if module not in sys.modules:
            stand_in = stand_ins.setdefault(module, _Later(module))
            stand_in.__dict__[name] = Later(partial(_found, module, name))
    with modules_replaced(stand_ins):
        yield


def _found(module: str, name: str) -> Any:
    """What a module has by this name, which may be a module too."""
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        return import_module(f"{module}.{name}")


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


class _Later(ModuleType):
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

    stand_ins = {"transformers": _Later("transformers")}
    if "spacy" not in sys.modules:
        for name in ("spacy", "spacy.cli", "spacy.cli.download", "spacy.language"):
            stand_ins[name] = _Later(name)
        stand_ins["spacy.cli.download"].__dict__["download"] = download
        stand_ins["spacy.language"].__dict__["Language"] = Any  # for annotations alone
    absent = {name: one for name, one in stand_ins.items() if name not in sys.modules}
    with modules_replaced(absent):
        yield
