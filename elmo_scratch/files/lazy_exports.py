"""Names of a package that cost nothing until somebody asks for them."""

import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Callable, List, Mapping, Tuple


def lazy_exports(
    package: str, places: Mapping[str, str]
) -> Tuple[Callable[[str], Any], Callable[[], List[str]]]:
    """
    Lets a package offer names without importing the modules that they stand in: whoever embeds one
    sentence doesn't wait for what only a training needs.

    # Parameters

    package : `str`
        Its full name.
    places : `Mapping[str, str]`
        For each public name the module that defines it, as it is called within the package. The
        package's modules are there on demand as well and are not listed.

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
    """The modules and packages in a package."""
    return [found.name for found in iter_modules(sys.modules[package].__path__)]
