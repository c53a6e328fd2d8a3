"""Finds and reads all that a report is of."""

from pathlib import Path
from typing import Callable, List, NamedTuple, Sequence, TypeVar

from allennlp.common.checks import ConfigurationError
from h5py import is_hdf5

from elmo_scratch.report.layers import DescribedLayers, describe_layers
from elmo_scratch.report.results import Study, find_results, read_results
from elmo_scratch.report.run import Run, find_runs, read_run
from elmo_scratch.search import KeptSearch, holds_search, read_search

Read = TypeVar("Read")


class Contents(NamedTuple):
    """
    # Parameters

    runs : `Sequence[Run]`
        Trainings.
    studies : `Sequence[Study]`, optional (default = none)
        Result files of studies.
    searches : `Sequence[KeptSearch]`, optional (default = none)
        Of which `runs` has the trainings that are left.
    layer_files : `Sequence[DescribedLayers]`, optional (default = none)
        Files that `allennlp elmo` wrote.
    left_out : `Sequence[str]`, optional (default = none)
        Why others that were asked for are not among them, a line each.
    """

    runs: Sequence[Run]
    studies: Sequence[Study] = ()
    searches: Sequence[KeptSearch] = ()
    layer_files: Sequence[DescribedLayers] = ()
    left_out: Sequence[str] = ()


def read_contents(paths: Sequence[Path]) -> Contents:
    """
    # Parameters

    paths : `Sequence[Path]`
        Each is the output folder of a training; a folder of such folders, which may be that of a
        search, or have the result file of a study too; such a file; or a file of layers.

    # Returns

    `Contents`
        What is there, in this order. What can't be read within folders is left out.

    # Raises

    ConfigurationError
        If one of them is something else, or nothing can be read.
    """
    runs: List[Run] = []
    studies: List[Study] = []
    searches: List[KeptSearch] = []
    layer_files: List[DescribedLayers] = []
    left_out: List[str] = []
    for path in paths:
        if path.is_file():
            if is_hdf5(path):
                layer_files.append(describe_layers(path))
            else:
                studies.append(_read_study(path))
            continue
        results = find_results(path)
        studies += _readable(results, read_results, left_out)
        found = [path] if holds_search(path) else []
        searches += _readable(found, read_search, left_out)
        try:
            folders = find_runs(path)
        except ConfigurationError:
            if not results and not found:
                raise
            folders = []
        runs += _readable(folders, read_run, left_out)
    if not (runs or studies or searches or layer_files):
        raise ConfigurationError(left_out[0])
    return Contents(runs, studies, searches, layer_files, left_out)


def _read_study(path: Path) -> Study:
    if path.suffix != ".json":
        raise ConfigurationError(
            f"{path}: expected the output folder of a training, the result file of a study (.json) "
            "or an HDF5 file of layers, but it is another file"
        )
    return read_results(path)


def _readable(
    paths: Sequence[Path], read: Callable[[Path], Read], left_out: List[str]
) -> List[Read]:
    found = []
    for path in paths:
        try:
            found.append(read(path))
        except ConfigurationError as error:
            left_out.append(str(error.message))
    return found
