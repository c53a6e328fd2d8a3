"""A tiny biLM of characters and texts for it."""

from pathlib import Path
from typing import Any, Callable, Dict, List

import h5py
import numpy
import pytest

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export import InputText
from tests import FIXTURES_ROOT

FILES = FIXTURES_ROOT / "elmo" / "residual"
LINES = (FIXTURES_ROOT / "text" / "sentences.txt").read_text(encoding="utf-8").splitlines()[:50]

DataSets = Dict[str, Any]


@pytest.fixture
def new_layers() -> Callable[..., SentenceLayers]:
    """A biLM that has read nothing yet."""

    def new(state: str = "reset", **settings: Any) -> SentenceLayers:
        return SentenceLayers.from_official(
            FILES / "options.json", FILES / "weights.hdf5", state=state, **settings
        )

    return new


@pytest.fixture
def text() -> InputText:
    """Fifty sentences of several lengths."""
    return InputText("text", LINES)


def data_sets(path: Path) -> DataSets:
    """All that a layer file holds, by name; and its attributes."""
    with h5py.File(path) as file:
        found: DataSets = {name: file[name][()] for name in file}
        found["attributes"] = dict(file.attrs)
    return found


def assert_same(one: DataSets, other: DataSets) -> None:
    """Whether two files hold the same, to the bit."""
    assert list(one) == list(other)
    for name, value in one.items():
        if isinstance(value, numpy.ndarray):
            assert value.dtype == other[name].dtype
            assert numpy.array_equal(value, other[name]), name
        else:
            assert value == other[name]


def numbers_of(batches: List[List[Any]]) -> List[List[int]]:
    """The numbers of the sentences of each batch."""
    return [[sentence.number for sentence in batch] for batch in batches]
