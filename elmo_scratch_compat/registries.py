"""The registries in which AllenNLP looks up the names in configs and command lines."""

import functools
import sys
from importlib import import_module
from typing import Any, List

from elmo_scratch_compat.strangers import check_class, may_name


def look_up_safely(registrable: Any) -> None:
    """
    `import elmo_scratch` imports hardly anything, so that nobody waits for unused modules. The
    modules that register names are imported when AllenNLP looks up a name that it doesn't know, or
    lists the names that it knows.

    AllenNLP also takes the path of a class in place of a name, imports its module and calls
    whatever is there. A config in somebody else's archive could name `subprocess.Popen`; so the
    path must lead to a class of the kind that is asked for. And the import alone runs a program
    where the module is one, such as `venv.__main__`; so an archive's config has nothing imported
    but what `may_name` allows.
    """
    base, wrong = registrable.Registrable, registrable.ConfigurationError
    resolve, list_known = base.resolve_class_name.__func__, base.list_available.__func__

    @classmethod  # type: ignore[misc]
    @functools.wraps(resolve)
    def resolve_class_name(cls: Any, name: str) -> Any:
        if name not in base._registry[cls]:
            _import_all(cls)
        if name not in base._registry[cls] and "." in name and not may_name(name):
            raise wrong(
                f"{name!r} is no registered {cls.__name__}, and nothing is imported because an "
                f"archive names it. If you trust it, add --include-package {name.partition('.')[0]}"
            )
        found, constructor = resolve(cls, name)
        if name not in base._registry[cls] and not _is_of_kind(found, cls):
            raise wrong(
                f"{name!r} is no {cls.__name__}: expected a name that is registered, or the path "
                "of a class that is derived from it"
            )
        check_class(found)
        return found, constructor

    @classmethod  # type: ignore[misc]
    @functools.wraps(list_known)
    def list_available(cls: Any) -> List[str]:
        _import_all(cls)
        return list_known(cls)

    base.resolve_class_name, base.list_available = resolve_class_name, list_available


def _is_of_kind(found: Any, base: type) -> bool:
    """
    Whether a class may stand for a registered one. PyTorch's own optimizers and modules may stand
    for AllenNLP's, which are derived from the same.
    """
    kinds = [base]
    if base.__module__.startswith("allennlp."):
        kinds += [kind for kind in base.__mro__ if kind.__module__.startswith("torch.")]
    return isinstance(found, type) and issubclass(found, tuple(kinds))


def _import_all(base: type) -> None:
    """
    Imports what the package registers for configs, or the subcommands, if it is in use and the
    registry isn't its own.
    """
    # A registry of the package's own is filled by the folder that defines it.
    if "elmo_scratch" in sys.modules and not base.__module__.startswith("elmo_scratch."):
        of_commands = base.__module__ == "allennlp.commands.subcommand"
        import_module("elmo_scratch.commands" if of_commands else "elmo_scratch.registered")
