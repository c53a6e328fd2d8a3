"""Recovery of a training that was interrupted, as if nothing had happened."""

__all__: list = []
