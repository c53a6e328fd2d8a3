"""
Everything that a config or a command line can name. What a file registers exists once the file is
imported, and this module imports every file of the package.

After `import elmo_scratch` there is no need for it: AllenNLP imports it when it first looks a name
up (`elmo_scratch_compat.registries`).
"""

from importlib import import_module
from pkgutil import walk_packages

import elmo_scratch

for found in walk_packages(elmo_scratch.__path__, f"{elmo_scratch.__name__}."):
    import_module(found.name)
