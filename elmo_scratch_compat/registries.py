"""Where AllenNLP looks up what configs and command lines name."""

import functools
import sys
from importlib import import_module
from typing import Any, List


def import_all_first(registrable: Any) -> None:
    """
    `import elmo_scratch` imports hardly anything, so that nobody waits for what isn't used. What
    the package registers is imported when AllenNLP looks up a name that it doesn't know, or lists
    the names that it knows.
    """
    base = registrable.Registrable
    resolve, list_known = base.resolve_class_name.__func__, base.list_available.__func__

    @classmethod  # type: ignore[misc]
    @functools.wraps(resolve)
    def resolve_class_name(cls: Any, name: str) -> Any:
        if name not in base._registry[cls]:
            _import_all(cls)
        return resolve(cls, name)

    @classmethod  # type: ignore[misc]
    @functools.wraps(list_known)
    def list_available(cls: Any) -> List[str]:
        _import_all(cls)
        return list_known(cls)

    base.resolve_class_name, base.list_available = resolve_class_name, list_available


def _import_all(base: type) -> None:
    """Imports all that the package registers, where it is used and the names aren't its own."""
    # Its own registries are filled by the room that defines them.
    if "elmo_scratch" in sys.modules and not base.__module__.startswith("elmo_scratch."):
        import_module("elmo_scratch.registered")
