import struct
from pathlib import Path
from typing import Any, Optional, Tuple

import h5py
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import LayerFileFacts
from elmo_scratch.interop.layer_files.facts import check_attributes
from elmo_scratch.interop.layer_files.hdf5 import open_hdf5
from tests.interop.layer_files.tiny_layers import FACTS


def read(path: Path) -> Optional[LayerFileFacts]:
    with h5py.File(path, "r") as file:
        return LayerFileFacts.read(file, "layers.hdf5")


@pytest.mark.parametrize(
    "facts",
    [
        FACTS,
        FACTS._replace(pool="max", kept="top", export=""),
        FACTS._replace(keys="sentences"),
    ],
)
def test_what_was_written_is_read(facts: LayerFileFacts, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "layers.hdf5", "w") as file:
        facts.write(file)
        assert file.attrs["width"] == 4
        assert ("pool" in file.attrs) == (facts.pool is not None)
    assert read(tmp_path / "layers.hdf5") == facts


def test_a_file_without_attributes_has_no_facts(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "layers.hdf5", "w"):
        pass
    assert read(tmp_path / "layers.hdf5") is None


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("width", 0, "`width` to be a size, but got 0"),
        ("width", "four", "`width` to be a size, but got 'four'"),
        ("layers", 2.5, "`layers` to be a size"),
        ("layers", True, "`layers` to be a size"),
        ("kept", "some", r"`kept` to be one of \('all', 'top', 'average'\), but got 'some'"),
        ("kept", [1, 2], "`kept` to be one of"),
        ("pool", "sum", "`pool` to be one of"),
        ("model", 3, "`model` to be a text, but got 3"),
        ("keys", "lines", "`keys` to be one of"),
        ("state", None, "`state` to be one of .* but got None"),
    ],
)
def test_a_fact_that_makes_no_sense_is_an_error(
    name: str, value: Any, message: str, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "layers.hdf5", "w") as file:
        FACTS.write(file)
        file.attrs.pop(name, None)
        if value is not None:
            file.attrs[name] = value
    with pytest.raises(ConfigurationError, match=f"layers.hdf5: expected the attribute {message}"):
        read(tmp_path / "layers.hdf5")


@pytest.mark.parametrize(
    "kept, pool, right, wrong",
    [
        ("all", None, (3, 5, 4), (5, 4)),
        ("all", None, (3, 0, 4), (2, 5, 4)),
        ("all", "mean", (3, 4), (3, 5, 4)),
        ("top", None, (5, 4), (3, 5, 4)),
        ("average", None, (0, 4), (5, 3)),
        ("top", "max", (4,), (5, 4)),
        ("all", None, (3, 1, 4), (3, 1, 4, 1)),
        ("top", None, (1, 4), (4,)),
        ("all", None, (3, 2, 4), ()),
    ],
)
def test_vectors_have_the_axes_that_were_kept(
    kept: str, pool: Optional[str], right: Tuple[int, ...], wrong: Tuple[int, ...]
) -> None:
    facts = FACTS._replace(kept=kept, pool=pool)
    assert facts.admits(right)
    assert not facts.admits(wrong)


@pytest.mark.parametrize("libver", ["earliest", "v108"])
@pytest.mark.parametrize("others", [0, 9])
def test_a_text_longer_than_its_file_is_an_error(libver: str, others: int, tmp_path: Path) -> None:
    """More than eight attributes lie in a heap of their own from HDF5 1.8 on."""
    path = tmp_path / "layers.hdf5"
    with h5py.File(path, "w", libver=libver) as file:
        file.attrs["kept"] = "average"
        for number in range(others):
            file.attrs[f"other {number}"] = number
    content = path.read_bytes()
    reference = struct.pack("<IQ", 7, content.index(b"GCOL"))
    assert content.count(reference) == 1
    path.write_bytes(content.replace(reference, struct.pack("<I", 2**32 - 1) + reference[4:]))
    with pytest.raises(ValueError, match="told to have 4294967295 bytes, but the file has fewer"):
        with open_hdf5(path, check_attributes) as file:
            file.attrs["kept"]


@pytest.mark.parametrize("value", [["kept"] * 2, [1], 1.5, numpy.bytes_(b"average")])
def test_other_attributes_are_not_read(value: Any, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "layers.hdf5", "w") as file:
        FACTS.write(file)
        file.attrs["kept"] = value
    with pytest.raises(ConfigurationError, match="`kept` to be one of"):
        read(tmp_path / "layers.hdf5")


def test_an_attribute_apart_from_its_type_is_an_error(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "layers.hdf5", "w") as file:
        FACTS.write(file)
        file["type"] = h5py.string_dtype()
        file.attrs.create("kept", "average", dtype=file["type"])
    with pytest.raises(ConfigurationError, match="`kept` to be one of"):
        read(tmp_path / "layers.hdf5")
    with pytest.raises(ValueError, match="expected an attribute beside its type"):
        with open_hdf5(tmp_path / "layers.hdf5", check_attributes) as file:
            file.attrs["kept"]
