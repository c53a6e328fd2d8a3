"""Whatever an archive, a folder or a file holds, reading it is an answer or one error."""

import gzip
import io
import shutil
from pathlib import Path
from typing import Any, Dict

import h5py
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import load_archive

from elmo_scratch import SentenceScorer
from elmo_scratch.interop import read_bilm
from elmo_scratch.interop.many_langs import read_many_langs
from elmo_scratch_compat.bounds import ARCHIVE_END, ARCHIVE_MEMBERS
from elmo_scratch_compat.strangers import told_of
from tests import FIXTURES_ROOT
from tests.strangers.hostile_archives import (
    CHARACTERS,
    GOLDEN,
    Change,
    hostile,
    with_config,
    with_text,
    with_weights,
)

BIAS = "bilm.left_to_right.layers.0.bias"


def a_folder(name: str) -> Change:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return change


@pytest.mark.parametrize(
    "change",
    [
        *(with_text("config.json", text) for text in (b"null", b"[]", b"{}", b"\xff", b"NaN")),
        with_config(model=None),
        with_config(model=[]),
        with_config(model__bilm=3),
        with_config(model__bilm={"token_encoder": []}),
        with_config(model__namespace=[[]]),
        with_config(model__type={}),
        with_config(model__bilm__cell_size=float("nan")),
        with_config(model__bilm__cell_size=10**400),
        with_config(model__bilm__cell_size=2**63),
        with_config(model__bilm__dropout=float("inf")),
        with_config(model__bilm__dropout="\ud800"),
        with_config(dataset_reader=None),
        with_config(dataset_reader__type=None),
        with_config(dataset_reader__type=[3]),
        with_config(dataset_reader__token_indexers=[1]),
        with_config(dataset_reader__token_indexers={"tokens": None}),
        with_config(vocabulary=3),
        with_config(vocabulary={"type": 3}),
        with_config(vocabulary__oov_token=[1]),
        with_text("vocabulary/tokens.txt", b"\xff\n"),
        with_text("vocabulary/non_padded_namespaces.txt", b"\xff\n"),
        a_folder("vocabulary/tokens.txt"),
        with_weights(lambda tensors: {3: torch.ones(1), **tensors}),
        with_weights(lambda tensors: {**tensors, None: torch.ones(1)}),
        with_weights(lambda _: [1]),
        a_folder("weights.th"),
    ],
)
def test_whatever_is_in_an_archive_the_error_is_one_line_with_its_name(
    change: Change, tmp_path: Path
) -> None:
    archive = hostile(tmp_path / "x", change)
    for source in (archive, archive.with_name("model")):
        with pytest.raises(ConfigurationError) as error:
            read_bilm(source)
        assert str(source) in error.value.message
        assert "\n" not in error.value.message


@pytest.mark.parametrize(
    "change",
    [
        with_config(model=None),
        with_config(dataset_reader__token_indexers=[1]),
        with_text("vocabulary/tokens.txt", b"\xff\n"),
        with_weights(lambda tensors: {3: torch.ones(1), **tensors}),
        a_folder("config.json"),  # Jsonnet would end the process
    ],
)
def test_loading_a_model_names_its_archive(change: Change, tmp_path: Path) -> None:
    archive = hostile(tmp_path / "x", change)
    for source in (archive, archive.with_name("model")):
        with pytest.raises(ConfigurationError) as error:
            load_archive(source)
        assert str(source) in error.value.message
        assert "\n" not in error.value.message


def test_a_missing_archive_stays_the_error_of_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_archive(tmp_path / "model.tar.gz")


def test_scoring_names_the_archive_too(tmp_path: Path) -> None:
    archive = hostile(tmp_path / "x", with_config(data_loader=3))
    with pytest.raises(ConfigurationError, match=f"{archive}: expected"):
        SentenceScorer.from_pretrained(archive)


def test_a_config_that_is_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected a config, but it is a folder"):
        Params.from_file(str(tmp_path))


def test_an_error_that_nobody_foresaw_names_the_file_and_keeps_its_cause() -> None:
    with pytest.raises(
        ConfigurationError, match="^x.gz: expected a biLM, but .*: KeyError: 3$"
    ) as error:
        with told_of("x.gz", "a biLM"):
            {}[3]
    assert isinstance(error.value.__cause__, KeyError)


def test_errors_get_the_name_once() -> None:
    for told in ("x.gz: broken", "broken"):
        with pytest.raises(ConfigurationError) as error, told_of("x.gz", "a biLM"):
            raise ConfigurationError(told)
        assert error.value.message == "x.gz: broken"
    with pytest.raises(ConfigurationError) as error, told_of("x.gz", "a biLM", is_named=True):
        raise ConfigurationError("y/z.json: broken")
    assert error.value.message == "y/z.json: broken"


def test_a_tensor_whose_name_has_two_lines_is_told_in_one(tmp_path: Path) -> None:
    official, many_langs = tmp_path / "official", tmp_path / "many_langs"
    shutil.copytree(GOLDEN / "official", official)
    with h5py.File(official / "weights.hdf5", "a") as file:
        file["a\nb"] = [1.0]
    shutil.copytree(FIXTURES_ROOT / "elmo_for_many_langs" / "words", many_langs)
    weights = many_langs / "encoder.pkl"
    torch.save({**torch.load(weights, weights_only=True), "a\nb": torch.ones(1)}, weights)
    for read, folder in ((read_bilm, official), (read_many_langs, many_langs)):
        with pytest.raises(
            ConfigurationError, match=r'the tensor "a\\nb", .* is left over'
        ) as error:
            read(folder)
        assert "\n" not in error.value.message


@pytest.mark.parametrize(
    "name, told",
    [
        ("int32", "the type int32, where numbers with a fraction were expected"),
        ("bool", "the type bool, where numbers with a fraction were expected"),
        ("complex64", f"the tensor '{BIAS}' is complex64; expected plain real numbers"),
        ("sparse", f"the tensor '{BIAS}' is sparse; expected plain real numbers"),
        ("quint8", f"the tensor '{BIAS}' is quint8; expected plain real numbers"),
        ("meta", f"the tensor '{BIAS}' is meta; expected plain real numbers"),
    ],
)
def test_weights_of_other_types_are_refused(name: str, told: str, tmp_path: Path) -> None:
    def of_type(tensor: torch.Tensor) -> torch.Tensor:
        if name == "sparse":
            return tensor.to_sparse()
        if name == "meta":
            return tensor.to("meta")
        if name == "quint8":
            return torch.quantize_per_tensor(tensor, 0.1, 0, torch.quint8)
        return tensor.to(getattr(torch, name))

    change = with_weights(lambda tensors: {**tensors, BIAS: of_type(tensors[BIAS])})
    with pytest.raises(ConfigurationError, match=told) as error:
        read_bilm(hostile(tmp_path / "x", change))
    assert len(error.value.message) < 400


def test_weights_of_half_the_size_are_read(tmp_path: Path) -> None:
    def halve(tensors: Dict[Any, Any]) -> None:
        tensors.update({name: tensor.half() for name, tensor in tensors.items()})

    bilm = read_bilm(hostile(tmp_path / "x", with_weights(halve))).bilm
    assert {weight.dtype for weight in bilm.parameters()} == {torch.float32}


def test_a_softmax_of_whole_numbers_is_refused(tmp_path: Path) -> None:
    name = "softmax.weight"
    change = with_weights(lambda tensors: {**tensors, name: tensors[name].int()})
    with pytest.raises(ConfigurationError, match="weight holds numbers of the type int32"):
        SentenceScorer.from_pretrained(hostile(tmp_path / "x", change))


def test_zeros_without_end_behind_an_archive_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.tar.gz"
    shutil.copy(CHARACTERS, path)
    read_bilm(path)
    # Members of gzip follow each other: 300 times 2 MiB of zeros are 600 kB.
    zeros = io.BytesIO()
    with gzip.open(zeros, "w") as packed:
        packed.write(bytes(2 * ARCHIVE_END))
    with path.open("ab") as file:
        for _ in range(300):
            file.write(zeros.getvalue())
    for read in (read_bilm, load_archive):
        with pytest.raises(ConfigurationError, match=f"more than {ARCHIVE_END} bytes follow its"):
            read(path)


def test_an_archive_of_very_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ARCHIVE_MEMBERS > 1000
    monkeypatch.setattr("elmo_scratch_compat.archives.ARCHIVE_MEMBERS", 6)
    with pytest.raises(ConfigurationError, match="it holds more than 6 files and folders"):
        read_bilm(hostile(tmp_path / "x", with_text("one_more", b"")))
