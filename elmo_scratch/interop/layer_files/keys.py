"""What can be the key of a sentence's vectors in an HDF5 file."""

FORBIDDEN = {"/": "a slash", "\0": "a NUL"}
"""What no name in an HDF5 file may hold: the first divides groups, the second ends a name."""

NO_NAMES = ("", ".")
"""What HDF5 takes for the group itself."""


def is_key(key: str) -> bool:
    """Whether a data set can have that name."""
    return key not in NO_NAMES and not any(character in key for character in FORBIDDEN)
