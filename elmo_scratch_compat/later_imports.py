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
    # AllenNLP imports these for an order of libraries that some systems want. PyTorch sees to it.
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
    """Stands for a class, a function or an object that is made when it is used."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._made: Callable[[], Any] = lru_cache(maxsize=None)(make)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._made()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._made(), name)

    def __getitem__(self, key: Any) -> Any:
        return self._made()[key]

    def __contains__(self, thing: Any) -> bool:
        return thing in self._made()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())

    def __bool__(self) -> bool:
        return bool(self._made())

    def __instancecheck__(self, thing: Any) -> bool:
        return isinstance(thing, self._made())

    def __subclasscheck__(self, kind: Any) -> bool:
        return issubclass(kind, self._made())

    def __mro_entries__(self, bases: Tuple[Any, ...]) -> Tuple[Any]:
        return (self._made(),)


class LaterName(Later):
    """Stands for a name of a module that is imported when the name is used."""

    def __init__(self, module: str, name: str) -> None:
        self._place = (module, name)
        # Looked up at each use, as a name of a module is: a test may put something else there.
        self._made = partial(_found, module, name)

    def __eq__(self, other: object) -> bool:
        # Imports nothing: what has not been imported yet is no thing that is there to compare.
        module, name = self._place
        there = vars(sys.modules[module]) if module in sys.modules else {}
        return other is self or (name in there and bool(other == there[name]))

    # The hash of the thing itself would import it for each annotation that names it.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{'.'.join(self._place)}, imported when it is used>"

    def __reduce__(self) -> Tuple[Any, ...]:
        return _found, self._place


class LaterModule:
    """
    Stands for a module while `importing`, which imports it, runs: what that takes of it is imported
    when it is used, whether a name or a part that is one of `modules`. Afterwards its attributes
    are the module's own.
    """

    def __init__(self, name: str, modules: Tuple[str, ...], importing: str) -> None:
        self._name = name
        self._modules = modules
        self._importing = importing

    def __getattr__(self, name: str) -> Any:
        # Tools that look at objects ask for names such as `__wrapped__`, which must import nothing.
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        if f"{self._name}.{name}" in self._modules:
            return LaterModule(f"{self._name}.{name}", self._modules, self._importing)
        if self._importing in IMPORTS.modules:
            return LaterName(self._name, name)
        return _found(self._name, name)


def _found(module: str, name: str) -> Any:
    """What a module has by this name, which may be a module too."""
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        try:
            return import_module(f"{module}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{module}.{name}":
                raise
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


class Imports:
    """
    `builtins.__import__` while any of some modules run: each of these, and no other one, gets
    stand-ins for the names that it imports from certain modules, if they are not imported yet.
    """

    def __init__(self) -> None:
        self.modules: Dict[str, Tuple[str, ...]] = {}
        self._original = builtins.__import__

    def begin(self, importing: str, modules: Tuple[str, ...]) -> None:
        """The module `importing` begins to run, which shall import these later."""
        if not self.modules:
            self._original = builtins.__import__
            builtins.__import__ = self
        self.modules[importing] = modules

    def end(self, importing: str) -> None:
        """It has run. Ending what has not begun changes nothing."""
        self.modules.pop(importing, None)
        if not self.modules and builtins.__import__ is self:
            builtins.__import__ = self._original

    def __call__(
        self,
        name: str,
        globals: Optional[Mapping[str, object]] = None,
        locals: Optional[Mapping[str, object]] = None,
        fromlist: Optional[Sequence[str]] = (),
        level: int = 0,
    ) -> Any:
        importing = str(globals.get("__name__")) if globals is not None else ""
        modules = self.modules.get(importing, ())
        if name in modules and (name not in sys.modules or name == LAZY):
            # As `import a.b` gives `a`, and `from a.b import c` gives `a.b`.
            return LaterModule(name if fromlist else name.partition(".")[0], modules, importing)
        return self._original(name, globals, locals, fromlist, level)


IMPORTS = Imports()
"""The later imports of this process."""


@contextmanager
def imported_when_used(importing: str, modules: Tuple[str, ...]) -> Iterator[None]:
    """In the block, the module `importing` gets stand-ins: see `Imports`."""
    IMPORTS.begin(importing, modules)
    try:
        yield
    finally:
        IMPORTS.end(importing)


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
