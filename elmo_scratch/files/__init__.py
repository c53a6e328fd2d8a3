"""Files and the machine: atomic writes, paths, identities, memory, signals."""

__all__: list = []
