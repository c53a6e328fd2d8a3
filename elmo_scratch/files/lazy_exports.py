"""Offers the names of a package without importing their modules before somebody asks for them."""

import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Callable, List, Mapping, Tuple


def lazy_exports(
    package: str, places: Mapping[str, str]
) -> Tuple[Callable[[str], Any], Callable[[], List[str]]]:
    """
    Lets a package offer names without importing the modules that define them: whoever embeds one
    sentence doesn't wait for the imports of a training.

    # Parameters

    package : `str`
        Its full name.
    places : `Mapping[str, str]`
        For each public name the module that defines it, relative to the package. The package's
        modules are imported on demand as well and are not listed.

    # Returns

    `Tuple[Callable[[str], Any], Callable[[], List[str]]]`
        The `__getattr__` and the `__dir__` of the package.

    # Source

    PEP 562.
    """
    module = sys.modules[package]

    def __getattr__(name: str) -> Any:
        if name in places:
            value = getattr(import_module(f"{package}.{places[name]}"), name)
            setattr(module, name, value)
            return value
        if name in _modules_of(package):
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def __dir__() -> List[str]:
        return sorted({*module.__all__, *_modules_of(package)})

    return __getattr__, __dir__


def _modules_of(package: str) -> List[str]:
    """The names of the modules and packages in a package."""
    return [found.name for found in iter_modules(sys.modules[package].__path__)]
