"""What AllenNLP imports at once, and few programs use."""

import builtins
import sys
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence, Tuple

CLASSIFICATION = "allennlp_models.classification.dataset_readers"
STRUCTURE = "allennlp_models.structured_prediction"
LATER: Dict[str, Tuple[str, ...]] = {
    # For the order in which some systems want libraries to be loaded; they get it from PyTorch.
    "allennlp": ("transformers", "spacy"),
    "allennlp.common.cached_transformers": ("transformers",),
    "allennlp.common.util": ("spacy", "spacy.cli.download", "spacy.language"),
    "allennlp.data.data_loaders.data_collator": ("transformers.data.data_collator",),
    "allennlp.data.fields.text_field": ("spacy.tokens",),
    "allennlp.data.token_indexers.spacy_indexer": ("spacy.tokens",),
    "allennlp.data.tokenizers.pretrained_transformer_tokenizer": ("transformers",),
    "allennlp.data.tokenizers.sentence_splitter": ("spacy",),
    "allennlp.data.tokenizers.spacy_tokenizer": ("spacy", "spacy.tokens"),
    "allennlp.data.vocabulary": ("transformers",),
    "allennlp.fairness.bias_direction": ("sklearn",),
    "allennlp.fairness.bias_mitigators": ("sklearn",),
    "allennlp.fairness.fairness_metrics": ("scipy.stats",),
    "allennlp.modules.token_embedders.pretrained_transformer_embedder": ("transformers",),
    "allennlp.modules.transformer.activation_layer": ("transformers.models.bert.modeling_bert",),
    "allennlp.training.metrics.auc": ("sklearn",),
    "allennlp.training.metrics.evalb_bracketing_scorer": ("nltk",),
    "allennlp.training.metrics.spearman_correlation": ("scipy.stats",),
    f"{CLASSIFICATION}.stanford_sentiment_tree_bank": ("nltk.tree",),
    "allennlp_models.common.ontonotes": ("nltk",),
    "allennlp_models.coref.metrics.conll_coref_scores": ("scipy.optimize",),
    "allennlp_models.coref.predictors.coref": ("spacy.tokens",),
    "allennlp_models.generation.dataset_readers.cnn_dm": ("ftfy",),
    "allennlp_models.generation.models.bart": ("transformers.models.bart.modeling_bart",),
    "allennlp_models.lm.modules.language_model_heads.bert": (
        "transformers.models.bert.modeling_bert",
    ),
    "allennlp_models.lm.modules.language_model_heads.gpt2": (
        "transformers.models.gpt2.modeling_gpt2",
    ),
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
    f"{STRUCTURE}.dataset_readers.srl": ("transformers.models.bert.tokenization_bert",),
    f"{STRUCTURE}.models.constituency_parser": ("nltk",),
    f"{STRUCTURE}.models.srl_bert": (
        "transformers.models.bert.configuration_bert",
        "transformers.models.bert.modeling_bert",
    ),
    f"{STRUCTURE}.predictors.constituency_parser": ("nltk",),
    f"{STRUCTURE}.predictors.srl": ("spacy.tokens",),
    # AllenNLP reads only the names of tags in its table, not what spaCy's numbers say of them.
    f"{STRUCTURE}.predictors.util": ("spacy.symbols",),
}
"""
What modules of AllenNLP import at once and use later, if at all. With what that imports in turn,
such as pandas, it took more than half of the time in which a command starts, PyTorch's left out.
"""

LAZY = "transformers"
"""It imports each of its names when it is asked for it: that it is there says nothing of them."""


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

    def __getitem__(self, key: Any) -> Any:
        return self._made()[key]

    def __instancecheck__(self, thing: Any) -> bool:
        return isinstance(thing, self._made())

    def __subclasscheck__(self, kind: Any) -> bool:
        return issubclass(kind, self._made())

    def __mro_entries__(self, bases: Tuple[Any, ...]) -> Tuple[Any]:
        return (self._made(),)


class LaterModule:
    """
    Stands for a module while another one runs that imports it: its names are imported when they are
    used, and so are those of the `modules` that are parts of it. Later it has the module's names.
    """

    def __init__(self, name: str, modules: Tuple[str, ...], is_running: Callable[[], bool]) -> None:
        self._name = name
        self._modules = modules
        self._is_running = is_running

    def __getattr__(self, name: str) -> Any:
        # Whoever looks through a module's names asks each of them for some of these.
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        if f"{self._name}.{name}" in self._modules:
            return LaterModule(f"{self._name}.{name}", self._modules, self._is_running)
        if not self._is_running():
            return _found(self._name, name)
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
    runs = True

    def import_or_stand_in(
        name: str,
        globals: Optional[Mapping[str, object]] = None,
        locals: Optional[Mapping[str, object]] = None,
        fromlist: Optional[Sequence[str]] = (),
        level: int = 0,
    ) -> Any:
        is_asked_by_it = globals is not None and globals.get("__name__") == importing
        if is_asked_by_it and name in modules and (name not in sys.modules or name == LAZY):
            # As `import a.b` gives `a`, and `from a.b import c` gives `a.b`.
            module = name if fromlist else name.partition(".")[0]
            return LaterModule(module, modules, lambda: runs)
        return original(name, globals, locals, fromlist, level)

    builtins.__import__ = import_or_stand_in
    try:
        yield
    finally:
        builtins.__import__ = original
        runs = False


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
            # What has taken its place meanwhile stays there.
            if sys.modules.get(name) is stand_in:
                sys.modules.pop(name, None)
                sys.modules.update({name: before[name]} if name in before else {})
