"""A training that was cut off goes on as if nothing had happened."""

__all__: list = []
