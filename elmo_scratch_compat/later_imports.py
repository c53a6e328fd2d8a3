"""spaCy and transformers, which AllenNLP imports at once and few programs use."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Iterator


class _Later(ModuleType):
    """Stands for a module, which is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
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

    placeholders = {"transformers": _Later("transformers")}
    if "spacy" not in sys.modules:
        for name in ("spacy", "spacy.cli", "spacy.cli.download", "spacy.language"):
            placeholders[name] = _Later(name)
        placeholders["spacy.cli.download"].__dict__["download"] = download
        placeholders["spacy.language"].__dict__["Language"] = Any  # for annotations alone
    placed = [name for name in placeholders if name not in sys.modules]
    sys.modules.update({name: placeholders[name] for name in placed})
    try:
        yield
    finally:
        for name in placed:
            sys.modules.pop(name, None)
