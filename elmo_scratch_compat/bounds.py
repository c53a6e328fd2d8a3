"""
How much a file from others may ask for. `docs/strangers.md` has the same table, and a test compares
them. Bytes, unless a line says otherwise.
"""

ARCHIVE_ALWAYS = 2**28
"""What any archive may unpack to."""

ARCHIVE_COMPRESSIBLE = 200
"""How many times larger than its archive a model may be: weights hardly shrink."""

ARCHIVE_MEMBERS = 10_000
"""Files and folders in an archive."""

ARCHIVE_HEADER = 2**16
"""A member that only describes the next one, such as a long name."""

ARCHIVE_END = 2**20
"""What may follow the last member of an archive; tar fills a block of at most this size."""

CONFIG_SIZE = 2**24
"""The config of an archive."""

CONFIG_DEPTH = 200
"""Levels of lists and maps that a config may have: Jsonnet's parser gives up at 500."""

SHARED_TENSORS = 4
"""
How many times larger than their file tensors may be, as one stored tensor can serve several.
"""

FOLDER_CONFIG_SIZE = 2**20
"""The `config.json` of a model folder, and a record of a training beside it."""

OPTIONS_SIZE = 2**20
"""An `options.json`."""

OPTIONS_NUMBER = 2**31 - 1
"""The largest size in an `options.json` and in other settings; a number, not bytes."""

OPTIONS_CLIP = 3.4e38
"""The largest bound of cells and projections there: float32 ends. A number, not bytes."""

HDF5_ALWAYS = 2**26
"""What any data set of an HDF5 file may take in memory, or the model in a zip file on the disk."""

HDF5_COMPRESSIBLE = 64
"""How many times larger than what is stored of it, or than the zip file, a larger one may be."""

INDEX_ENTRY = 2**25
"""A sentence and its key in the index of a file of layers."""

LINE_SIZE = 2**26
"""A line of a text, or a field of a table of news."""

SWEEP_SIZE = 2**20
"""A sweep file."""

SWEEP_NODES = 100_000
"""Values in a sweep file, once its aliases are written out; a number of them."""
