"""Reads the tensors of an official weight file, which may come from an untrusted source."""

import math
import os
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Dict, Iterator, List, Tuple, Union

import h5py
import numpy
from allennlp.common.checks import ConfigurationError
from h5py import h5d, h5z

from elmo_scratch.files.paths import resolve_path

SMALL = 2**26
"""Any data set may take this many bytes of memory."""

COMPRESSIBLE = 64
"""A larger data set may be this many times smaller in its file than in memory."""


PLAIN_FILTERS = (h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32)
"""HDF5 filters that don't change how much room numbers take."""


def refused_size(file: h5py.File, found: h5d.DatasetID) -> str:
    """
    The reason not to read a data set: it would take far more memory than the file can have numbers
    for. Empty if it may be read.

    A data set that was never written has any shape and takes no room in its file. A data set that
    is stored in chunks is unpacked a whole chunk at a time, however few numbers it has.
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


Source = Union[str, PathLike]
Shape = Tuple[int, ...]

NUM_BYTES = 4
"""Bytes of a number in memory."""


def local_file(file: Source) -> Path:
    """
    The local path of a file, fetched if it is an address. Raises `ConfigurationError` if it is
    missing, is a folder, may not be read or can't be fetched.
    """
    try:
        path = resolve_path(file)
    except FileNotFoundError:
        raise ConfigurationError(f"{file}: there is no such file") from None
    if path.is_dir():
        raise ConfigurationError(f"{file}: expected a file, but it is a folder")
    if not os.access(path, os.R_OK):
        raise ConfigurationError(f"{file}: cannot be read (permission denied)")
    return path


@contextmanager
def _damage_explained(source: str) -> Iterator[None]:
    """Explains errors of h5py, which raises nearly every kind of error for damaged files."""
    try:
        yield
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{source}: expected the weights of a biLM in an HDF5 file, but it can't be "
            f"read; if it was downloaded, the download may be incomplete. {error}"
        ) from None


class WeightFile:
    """
    An HDF5 file of tensors, opened by `WeightFile.open`. Error messages call it `source`.

    Reads only numbers that are stored in the file itself, and only after their shapes were checked.
    """

    def __init__(self, source: str, file: h5py.File) -> None:
        self.source = source
        self._file = file
        self._seen = {_address(file)}
        self._datasets = dict(self._visit(file, ""))
        self._check_total()
        self._shapes: Dict[str, Shape] = {
            name: dataset.shape for name, dataset in self._datasets.items()
        }

    @classmethod
    @contextmanager
    def open(cls, weight_file: Source) -> Iterator["WeightFile"]:
        """
        Opens the file for the block. Raises `ConfigurationError` if it is missing or can't be read.
        """
        source, path = str(weight_file), local_file(weight_file)
        with _damage_explained(source):
            file = h5py.File(path, "r")
        with file:
            with _damage_explained(source):
                weights = cls(source, file)
            yield weights

    def shapes(self) -> Dict[str, Shape]:
        """The shape of each tensor, by its path in the file."""
        return self._shapes

    def check_shapes(self, expected: Dict[str, Shape], asked_by: str) -> None:
        """
        Raises `ConfigurationError` if a tensor is missing, left over or of another shape.
        `asked_by` names the file that the expected shapes follow from.
        """
        shapes = self.shapes()
        for name, shape in expected.items():
            if name not in shapes:
                raise ConfigurationError(
                    f"{self.source}: the tensor {name}, of the shape {shape}, is missing, which "
                    f"{asked_by} asks for; the file holds {sorted(shapes)}"
                )
            if shapes[name] != shape:
                raise ConfigurationError(
                    f"{self.source}: expected {name} to have the shape {shape}, by the sizes in "
                    f"{asked_by}, but it has the shape {shapes[name]}"
                )
        for name in sorted(set(shapes) - set(expected)):
            raise ConfigurationError(
                f"{self.source}: the tensor {name}, of the shape {shapes[name]}, is left over: the "
                f"biLM of {asked_by} has none of that name"
            )

    def read(self) -> Dict[str, numpy.ndarray]:
        """
        Reads all tensors as float32, by their paths. Raises `ConfigurationError` if one can't be
        read or holds anything but finite numbers, or they don't all fit into memory.
        """
        tensors = {}
        for name, dataset in self._datasets.items():
            with _damage_explained(self.source):
                tensors[name] = self._numbers(name, dataset)
            if not numpy.isfinite(tensors[name]).all():
                raise ConfigurationError(
                    f"{self.source}: {name} holds numbers that are not finite; such weights come "
                    "of a training that diverged or of a damaged file"
                )
        return tensors

    def _numbers(self, name: str, dataset: h5py.Dataset) -> numpy.ndarray:
        """The numbers of a data set as float32."""
        try:
            with numpy.errstate(over="ignore"):
                return dataset[...].astype("float32", copy=False)
        except MemoryError:
            raise ConfigurationError(
                f"{self.source}: its tensors don't fit into memory; there was no room for {name}, "
                f"of the shape {dataset.shape}"
            ) from None

    def _visit(self, group: h5py.Group, prefix: str) -> List[Tuple[str, h5py.Dataset]]:
        """Collects the data sets of a group and of the groups within it."""
        found: List[Tuple[str, h5py.Dataset]] = []
        for name in group:
            path = f"{prefix}{name}"
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise self._refusal(path, "a link")
            member = group[name]
            # Groups that each hold the next one twice would take forever to visit.
            if _address(member) in self._seen:
                raise self._refusal(path, "the same as another")
            self._seen.add(_address(member))
            if isinstance(member, h5py.Group):
                found += self._visit(member, f"{path}/")
            elif not isinstance(member, h5py.Dataset) or member.shape is None:
                raise self._refusal(path, "no tensor")
            elif member.external or member.is_virtual:
                raise self._refusal(path, "stored in another file")
            elif member.dtype.kind != "f":
                raise self._refusal(path, f"of the type {member.dtype}")
            else:
                reason = refused_size(self._file, member.id)
                if reason:
                    raise ConfigurationError(
                        f"{self.source}: {path} has the shape {member.shape} and {reason}"
                    )
                found.append((path, member))
        return found

    def _check_total(self) -> None:
        """
        Refuses many tensors that are small enough one by one, but together far larger than the
        file.
        """
        total = sum(math.prod(dataset.shape) * NUM_BYTES for dataset in self._datasets.values())
        stored = os.path.getsize(self._file.filename)
        if total > SMALL + COMPRESSIBLE * stored:
            raise ConfigurationError(
                f"{self.source}: its tensors would take {total} bytes of memory together, but it "
                f"has no more than {stored} bytes"
            )

    def _refusal(self, path: str, what: str) -> ConfigurationError:
        """The error for a member that no weight file has."""
        return ConfigurationError(
            f"{self.source}: expected a tensor of numbers with a fraction at {path}, but it is "
            f"{what}"
        )


def _address(member: h5py.HLObject) -> int:
    """The address of a group or a data set in its file."""
    address: int = h5py.h5o.get_info(member.id).addr
    return address
