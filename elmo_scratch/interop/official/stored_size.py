"""What a data set of a foreign HDF5 file may take in memory."""

import math
import os

import h5py
from h5py import h5d, h5z

SMALL = 2**26
"""Bytes that any data set may take in memory."""

COMPRESSIBLE = 64
"""How many times smaller than in memory a larger data set may be in its file."""


PLAIN_FILTERS = (h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32)
"""What numbers pass that take as much room after it."""


def refused_size(file: h5py.File, found: h5d.DatasetID) -> str:
    """
    A data set that was never written has any shape and takes no room in its file; and one that is
    stored in chunks is unpacked a whole chunk at a time, however few numbers it has.

    # Parameters

    file : `h5py.File`
        The file that it lies in.
    found : `h5py.h5d.DatasetID`
        The data set.

    # Returns

    `str`
        Why it must not be read, where it would take far more memory than the file can have numbers
        for; empty where it may.
    """
    properties = found.get_create_plist()
    filters = [properties.get_filter(place)[0] for place in range(properties.get_nfilters())]
    if sum(code not in PLAIN_FILTERS for code in filters) > 1:
        return "is packed more than once, so that it can't be told what it would take in memory"
    is_chunked = properties.get_layout() == h5d.CHUNKED
    chunk = properties.get_chunk() if is_chunked else ()
    num_bytes = max(math.prod(found.shape), math.prod(chunk)) * found.get_type().get_size()
    if num_bytes <= SMALL:
        return ""
    stored = min(found.get_storage_size(), os.path.getsize(file.filename))
    if num_bytes <= COMPRESSIBLE * stored:
        return ""
    return f"would take {num_bytes} bytes of memory, but no more than {stored} bytes are stored"
