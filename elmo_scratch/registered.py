"""
Registers everything that a config or a command line can name: a file registers its names when it is
imported, and this module imports every file of the package.

Nobody needs to import it after `import elmo_scratch`: AllenNLP does so when it first looks a name
up (`elmo_scratch_compat.registries`).
"""

from importlib import import_module
from pkgutil import walk_packages

import elmo_scratch

for found in walk_packages(elmo_scratch.__path__, f"{elmo_scratch.__name__}."):
    import_module(found.name)
