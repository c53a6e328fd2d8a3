"""AllenNLP's search for plugins, which runs at the start of every command."""

import functools
import logging
import pkgutil
import sys
from glob import glob
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any, Iterator

from elmo_scratch_compat.command_line import LOADING
from elmo_scratch_compat.later_imports import Later, modules_replaced

INTEGRATIONS = "elmo_scratch.integrations"
"""
What is for other libraries, such as scikit-learn, and registers nothing with AllenNLP. It would
import them at the start of every command.
"""


def find_plugin(plugins: Any) -> None:
    """
    AllenNLP looks for plugins in a file of the current folder or of the home folder. It loads those
    of `DEFAULT_PLUGINS` in any folder, if they are installed. Each command began with a line for
    each of them; `--verbose` brings these back. With the last plugin all is loaded.

    To find the parts of a package AllenNLP imports what has their names outside of it, so that each
    command ran a file `data.py` of the current folder.
    """
    import_all, original = plugins.import_module_and_submodules, plugins.import_plugins

    @functools.wraps(import_all)
    def import_module_and_submodules(package_name: str, *args: Any, **kwargs: Any) -> None:
        if package_name != INTEGRATIONS:
            import_all(package_name, *args, **kwargs)

    @functools.wraps(original)
    def import_plugins() -> None:
        # AllenNLP looks for this package before each of its 700 modules. `None` says at once that
        # it isn't there. A user's own plugin may have its name.
        is_there = find_spec("checklist") is not None or bool(glob("checklist*"))
        with modules_replaced({} if is_there else {"checklist": None}):
            original()
        LOADING.end()

    # It calls itself, by the name that its module has for it.
    util: Any = import_module("allennlp.common.util")
    util.import_module_and_submodules = import_module_and_submodules
    util.pkgutil = SimpleNamespace(walk_packages=pkgutil.iter_modules)
    plugins.import_module_and_submodules = import_module_and_submodules
    plugins.import_plugins = import_plugins
    plugins.DEFAULT_PLUGINS += ("elmo_scratch",)
    if "--verbose" not in sys.argv:
        plugins.logger.setLevel(logging.WARNING)


def without_downloads(narrativeqa: Any) -> Iterator[None]:
    """
    A reader of allennlp-models downloads NLTK's data when it is imported, that is on every command,
    which without a network waits and prints errors. Where the data is needed and missing, NLTK
    itself says how to get it. NLTK is imported when an answer is scored.
    """
    nltk, rouge = ModuleType("nltk"), ModuleType("rouge")
    nltk.__dict__["data"] = SimpleNamespace(find=lambda name: name)
    # It makes an object of a class, whose module imports NLTK.
    rouge.__dict__["Rouge"] = lambda **settings: Later(
        lambda: import_module("rouge").Rouge(**settings)
    )
    with modules_replaced({"nltk": nltk, "rouge": rouge}):
        yield
