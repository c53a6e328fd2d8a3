"""Options, sweeps, texts, layers and parts of exports that somebody has made to do harm."""

import gzip
import json
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.corpus.shards import shard_blocks
from elmo_scratch.data.lines import text_lines
from elmo_scratch.export.parts import PartFolder
from elmo_scratch.export.plan import Span
from elmo_scratch.interop import LayerFile
from elmo_scratch.interop.folders.config import FolderConfig
from elmo_scratch.interop.layer_files.reader import DataSet
from elmo_scratch.interop.official.files import read_official_options
from elmo_scratch.search.search import Search
from elmo_scratch.search.sweep import read_sweep
from elmo_scratch_compat.bounds import LINE_SIZE, OPTIONS_NUMBER, OPTIONS_SIZE, SWEEP_SIZE
from tests.strangers.hostile_archives import GOLDEN


@pytest.mark.parametrize(
    "block, key, value, told",
    [
        ("lstm", "cell_clip", 10**400, r"`cell_clip` of `lstm` to be at most 3.4e\+38, or null"),
        ("lstm", "dim", 2**63, f"`dim` of `lstm` to be a whole number of at most {OPTIONS_NUMBER}"),
        ("lstm", "n_layers", 10**400, "`n_layers` of `lstm` to be a whole number of at most"),
        ("char_cnn", "filters", [[1, 2**63]], "`filters` of `char_cnn` to be pairs"),
        ("char_cnn", "n_highway", 2**31, "`n_highway` of `char_cnn` to be a whole number of at mo"),
    ],
)
def test_numbers_of_options_are_refused_by_name_and_bound(
    block: str, key: str, value: Any, told: str, tmp_path: Path
) -> None:
    options = json.loads((GOLDEN / "official" / "options.json").read_text("utf-8"))
    options[block][key] = value
    path = tmp_path / "options.json"
    path.write_text(json.dumps(options))
    with pytest.raises(ConfigurationError, match=f"{path}: expected {told}") as error:
        read_official_options(path)
    assert len(error.value.message) < 500 + len(str(path))


def test_large_options_are_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "options.json"
    path.write_text(" " * OPTIONS_SIZE + "{}")
    with pytest.raises(ConfigurationError, match=f"it has more than {OPTIONS_SIZE} bytes"):
        read_official_options(path)


def test_numbers_of_a_model_folder_are_bounded(tmp_path: Path) -> None:
    config = json.loads((GOLDEN / "folders" / "characters" / "config.json").read_text("utf-8"))
    config["bilm"]["cell_clip"] = 10**400
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    told = f"`cell_clip` .* a number of at most {OPTIONS_NUMBER}"
    with pytest.raises(ConfigurationError, match=told):
        FolderConfig.read(path)


ALIASES = "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)
"""Nine lines that stand for a billion values."""


@pytest.mark.parametrize(
    "text, told",
    [
        (f"a0: &a0 [1]\n{ALIASES}", "with its aliases written out it has more than 100000 values"),
        ("method: &a [*a]\n", "a value holds itself"),
        ("#" * (SWEEP_SIZE + 1), f"it has more than {SWEEP_SIZE} bytes"),
        ("", "expected the file to be a JSON object, but got null"),
    ],
)
def test_a_sweep_is_bounded(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=f"{path}: .*{told}|{path}: {told}"):
        read_sweep(path)


def test_aliases_in_a_sweep_are_read(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    text = (GOLDEN / "search" / "sweep.yaml").read_text("utf-8")
    path.write_text(f"{text}\ndescription: [&a [1, 2], *a]\n")
    assert read_sweep(path) == read_sweep(GOLDEN / "search" / "sweep.yaml")


def test_an_error_of_jsonnet_is_one_line(tmp_path: Path) -> None:
    config = tmp_path / "config.jsonnet"
    config.write_text("local f(n) = if n == 0 then error 'deep' else f(n - 1) + 1;\n{a: f(30)}\n")
    sweep = read_sweep(GOLDEN / "search" / "sweep.yaml")
    with pytest.raises(ConfigurationError, match="RUNTIME ERROR: deep .*jsonnet:1:") as error:
        Search(sweep, config, tmp_path / "runs")
    assert "\n" not in error.value.message


@pytest.fixture(params=[text_lines, shard_blocks])
def read_text(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_line_without_end_is_refused_with_its_number(read_text: Any, tmp_path: Path) -> None:
    path = tmp_path / "text.txt.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"the river rose\n\n")
        file.write(b"a" * (LINE_SIZE + 2**19))
    told = f"{path}, line 3: expected a line of at most {LINE_SIZE} bytes, but it is longer"
    with pytest.raises(ConfigurationError, match=told):
        for _ in read_text(path):
            pass


def test_lines_of_old_line_ends_are_cut_in_pieces(
    read_text: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("lines", "corpus.shards"):
        monkeypatch.setattr(f"elmo_scratch.data.{module}.LINE_SIZE", 8)
    monkeypatch.setattr("elmo_scratch.data.corpus.shards.BLOCK_SIZE", 5)
    monkeypatch.setattr("elmo_scratch.data.lines.READ_AT_ONCE", 3)
    for text in ("ab\rcd\r\nef\rg\r" * 9, "abcdef\r" * 5, "abcdef\r\n" * 5 + "x", "a\r" * 20 + "b"):
        path = tmp_path / "text.txt"
        path.write_bytes(text.encode())
        read = "".join(read_text(path))
        assert read.splitlines() == text.splitlines()


@pytest.mark.parametrize("key", ["²", "9" * 5000, "①"])
def test_keys_that_are_no_numbers_of_lines_count_no_lines(key: str, tmp_path: Path) -> None:
    path = tmp_path / "layers.hdf5"
    with h5py.File(path, "w") as file:
        for name in ("7", key, "8"):
            file[name] = numpy.zeros((3, 2, 4), "float32")
        # With an index, keys count lines whatever their names are.
        file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())[0] = "{}"
    with LayerFile(path) as layers:
        assert len(layers[7:9]) == 2
        assert layers[7].shape == (3, 2, 4)


def test_a_surrogate_in_an_index_names_no_data_set(tmp_path: Path) -> None:
    path = tmp_path / "layers.hdf5"
    with h5py.File(path, "w") as file:
        file["0"] = numpy.zeros((3, 1, 4), "float32")
        index = json.dumps({"river": "\ud800"})
        file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())[0] = index
    with LayerFile(path) as layers:
        with pytest.raises(KeyError):
            layers["river"]
        with pytest.raises(ConfigurationError, match="names the key .* but it is missing"):
            [layers.read_tokens(key, 1) for _, key in layers.token_sentences()]
    with h5py.File(path) as file, pytest.raises(KeyError):
        DataSet(file, "\ud800", "x")


def test_a_part_that_lacks_sentences_is_made_anew(tmp_path: Path) -> None:
    parts = PartFolder(tmp_path / "layers.hdf5")
    parts.path.mkdir()
    for span, held in ((Span(0, 999_999_999_999), 2), (Span(0, 2), 2), (Span(2, 5), 3)):
        with h5py.File(parts.file_of(span), "w") as file:
            for number in range(held):
                file[str(number)] = numpy.zeros((3, 2, 4), "float32")
    with pytest.raises(ConfigurationError, match="the 999999999999 sentences .* but it holds 2"):
        parts.check_whole()
    record = json.dumps({"export": "sha256:0"})
    (parts.path / "export.json").write_text(record)
    with parts.opened("sha256:0", resume=True, overwrite=False):
        assert parts.parts() == [Span(0, 2), Span(2, 5)]
        parts.check_whole()


def test_a_damaged_record_of_parts_is_that_of_another_export(tmp_path: Path) -> None:
    parts = PartFolder(tmp_path / "layers.hdf5")
    parts.path.mkdir()
    (parts.path / "export.json").write_bytes(b"\xff")
    assert parts.num_done("sha256:0") == 0


@pytest.mark.parametrize("arrays", [{}, {"hidden": 1.0}, {"hidden": "x", "cell": "y"}])
def test_a_state_of_other_arrays_is_an_error(arrays: Any, tmp_path: Path) -> None:
    parts = PartFolder(tmp_path / "layers.hdf5")
    parts.path.mkdir()
    numpy.savez(parts.path / "000000000003.state.npz", **arrays)
    with pytest.raises(ConfigurationError, match="can't be read .* Start anew with --overwrite"):
        parts.state_before(3)


def test_settings_of_ones_own_are_read_as_before(tmp_path: Path) -> None:
    """A config of one's own may be a program, and name any class."""
    path = tmp_path / "config.jsonnet"
    path.write_text("{a: 1 + 1}")
    assert Params.from_file(str(path)).as_dict() == {"a": 2}
