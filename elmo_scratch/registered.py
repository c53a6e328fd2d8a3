"""
Registers everything that a config can name: a file registers its names when it is imported, and
this module imports every file of the package, but for rooms that define no such name: what only a
command line, spaCy or scikit-learn names takes long to import.

Nobody needs to import it after `import elmo_scratch`: AllenNLP does so when it first looks a name
up (`elmo_scratch_compat.registries`).
"""

from importlib import import_module
from pkgutil import iter_modules, walk_packages

import elmo_scratch

SUBCOMMANDS = ("command_line", "commands", "explore", "export", "report", "search")
OTHER_LIBRARIES = ("integrations",)

for room in iter_modules(elmo_scratch.__path__):
    if room.name not in SUBCOMMANDS + OTHER_LIBRARIES:
        imported = import_module(f"{elmo_scratch.__name__}.{room.name}")
        if room.ispkg:
            for found in walk_packages(imported.__path__, f"{imported.__name__}."):
                import_module(found.name)
