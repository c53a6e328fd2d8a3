from pathlib import Path
from typing import Any, Callable

import h5py
import numpy
import pytest
import requests
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.official import read_official_options
from elmo_scratch_compat.bounds import HDF5_ALWAYS
from tests.interop.official.reference import (
    RESIDUAL,
    copied,
    reading_error,
    replacing,
    with_tensors,
)

CELL = "RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell"
SIZE = RESIDUAL.weights.stat().st_size


@pytest.mark.parametrize("length", [1, 8, 96, 800, SIZE // 10, SIZE // 2, SIZE - 4096, SIZE - 1])
def test_a_file_that_was_cut_short_is_an_error(length: int, tmp_path: Path) -> None:
    files = copied(RESIDUAL, tmp_path)
    files.weights.write_bytes(RESIDUAL.weights.read_bytes()[:length])
    message = reading_error(files)
    assert message.startswith(f"{files.weights}: expected the weights of a biLM in an HDF5 file")
    assert "the download may be incomplete" in message


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), 1e300])
def test_a_number_that_is_not_finite_is_an_error(number: float, tmp_path: Path) -> None:
    numbers = RESIDUAL.tensors()[f"{CELL}/B"].astype("float64")
    numbers[3] = number
    files = with_tensors(RESIDUAL, tmp_path, replacing(f"{CELL}/B", numbers))
    message = reading_error(files)
    assert message.startswith(f"{files.weights}: {CELL}/B holds numbers that are not finite")


@pytest.mark.parametrize(
    "value", [numpy.arange(3), numpy.array([True]), "text", b"", [1j]], ids=str
)
def test_other_data_than_numbers_with_a_fraction_are_an_error(value: Any, tmp_path: Path) -> None:
    files = with_tensors(RESIDUAL, tmp_path, replacing("char_embed", value))
    assert reading_error(files).startswith(
        f"{files.weights}: expected a tensor of numbers with a fraction at char_embed, but it is "
    )


@pytest.mark.parametrize(
    "link", [h5py.SoftLink("/CNN/b_cnn_0"), h5py.ExternalLink(str(RESIDUAL.weights), "char_embed")]
)
@pytest.mark.parametrize("name", ["char_embed", "CNN/W_cnn_0", f"{CELL}/B"])
def test_links_are_not_followed(link: Any, name: str, tmp_path: Path) -> None:
    files = with_tensors(RESIDUAL, tmp_path, replacing(name, link))
    assert reading_error(files).endswith(f"at {name}, but it is a link")


def add_external_storage(file: h5py.File) -> None:
    del file["CNN/b_cnn_0"]
    place = [(str(RESIDUAL.options), 0, 12)]
    file.create_dataset("CNN/b_cnn_0", (3,), "float32", external=place)


def add_virtual_data(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((3,), "float32")
    layout[:] = h5py.VirtualSource(str(RESIDUAL.weights), "CNN/b_cnn_0", (3,))
    file.create_virtual_dataset("virtual", layout)


def add_huge_data(file: h5py.File) -> None:
    file.create_dataset("huge", (2**50,), "float32", chunks=(2**10,))


def add_groups_of_groups(file: h5py.File) -> None:
    # Each holds the next one twice: 2^40 ways lead to the last.
    group = file.create_group("groups")
    for _ in range(40):
        inner = group.create_group("a")
        group["b"] = inner
        group = inner


def add_a_deep_group(file: h5py.File) -> None:
    file.create_group("/".join("a" * 2000))


def add_unwritten_data(file: h5py.File) -> None:
    del file["char_embed"]
    file.create_dataset("char_embed", (2**13, 2**13), "float32", chunks=(2**10, 2**10))


@pytest.mark.parametrize(
    "change, reason",
    [
        (add_a_deep_group, "in more than 16 groups"),
        (add_external_storage, "stored in another file"),
        (add_groups_of_groups, "the same as another"),
        (add_huge_data, "bytes of memory"),
        (add_unwritten_data, "bytes of memory"),
        (add_virtual_data, "stored in another file"),
        (replacing("char_embed", h5py.Empty("float32")), "no tensor"),
        (replacing("type", numpy.dtype("float32")), "no tensor"),
    ],
)
def test_odd_members_of_a_weight_file_are_an_error(
    change: Callable, reason: str, tmp_path: Path
) -> None:
    files = with_tensors(RESIDUAL, tmp_path, change)
    message = reading_error(files)
    assert message.startswith(str(files.weights)) and reason in message


def test_a_damaged_name_is_an_error(tmp_path: Path) -> None:
    files = copied(RESIDUAL, tmp_path)
    files.weights.write_bytes(files.weights.read_bytes().replace(b"W_proj", b"W_\xffroj"))
    assert reading_error(files).startswith(f"{files.weights}: expected the weights of a biLM")


def test_an_address_that_cannot_be_reached_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> str:
        raise requests.ConnectionError("offline")

    monkeypatch.setattr("elmo_scratch.files.paths.fetched", fail)
    with pytest.raises(ConfigurationError, match="http://x/options.json: .*offline"):
        read_official_options("http://x/options.json")


def test_tensors_that_have_no_room_are_not_taken_for_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("Unable to allocate 3 TiB")

    monkeypatch.setattr(h5py.Dataset, "__getitem__", fail)
    message = reading_error(RESIDUAL)
    assert message.startswith(f"{RESIDUAL.weights}: its tensors don't fit into memory; there was ")
    assert "download" not in message


def test_many_tensors_that_are_not_stored_are_an_error(tmp_path: Path) -> None:
    def many(file: h5py.File) -> None:
        for number in range(3):
            file.create_dataset(f"unwritten_{number}", (HDF5_ALWAYS // 4,), "float32")

    files = with_tensors(RESIDUAL, tmp_path, many)
    assert "tensors would take" in reading_error(files)


def test_few_tensors_that_are_not_stored_have_their_room(tmp_path: Path) -> None:
    """They are left over, which is told next."""
    files = with_tensors(
        RESIDUAL, tmp_path, lambda file: file.create_dataset("unwritten", (1000,), "float32")
    )
    assert "unwritten, of the shape (1000,), is left over" in reading_error(files)


def test_a_large_file_has_room_for_what_it_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = RESIDUAL.read().state_dict()
    # As if the tensors were larger than what any file may have.
    monkeypatch.setattr("elmo_scratch.interop.official.files.HDF5_ALWAYS", 0)
    for name, tensor in RESIDUAL.read().state_dict().items():
        assert torch.equal(tensor, expected[name]), name
