import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

import h5py
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import LayerFile, LayerFileWriter
from elmo_scratch.interop.layer_files import reader
from elmo_scratch.interop.layer_files import writer as writing
from tests.interop.full_disk import has_such_a_limit, printed_by
from tests.interop.layer_files.tiny_layers import FACTS, vectors_of, write_layers

FILL_THE_DISK = """
import os
import resource

import numpy

from elmo_scratch.interop import LayerFileFacts, LayerFileWriter

facts = LayerFileFacts("sha256:0", "", "all", None, 3, 16, "float32", "reset")
numbers = numpy.random.default_rng(13).normal(size=(3, 5, 16))
for compression in (None, "gzip", "lzf"):
    for limit in (0, 3000, 100_000, 300_000, 390_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            with LayerFileWriter.open("layers.hdf5", facts, compression=compression) as writer:
                for number in range(300):
                    writer.write(str(number), numbers)
                writer.write_index((f"sentence {number}", str(number)) for number in range(300))
        except OSError as error:
            print(error, os.listdir())
"""


def index_of(file: h5py.File) -> Dict[str, Any]:
    return json.loads(file["sentence_to_index"][0])


def test_there_is_a_float32_data_set_for_each_key(tmp_path: Path) -> None:
    sentences = ["one two three four five", "six seven", "eight"]
    path = write_layers(tmp_path / "layers.hdf5", sentences)
    with h5py.File(path, "r") as file:
        assert set(file) == {"0", "1", "2", "sentence_to_index"}
        for key, sentence in enumerate(sentences):
            assert file[str(key)].dtype == numpy.float32
            assert numpy.array_equal(file[str(key)], vectors_of(sentence))


def test_parts_of_larger_arrays_are_written_as_they_are(tmp_path: Path) -> None:
    batch = numpy.random.default_rng(13).normal(size=(3, 4, 6, FACTS.width)).astype("float32")
    written = {
        "in pieces": batch[:, 1, :5],
        "backwards": batch[::-1, 2, ::-1],
        "by columns": numpy.asfortranarray(batch[:, 3]),
        "in other bytes": batch[:, 0].astype(">f4"),
        "of one token": batch[:, 1, :1],
        "of none": batch[:, 1, :0],
    }
    path = tmp_path / "layers.hdf5"
    for dtype in ("float32", "float16"):
        with LayerFileWriter.open(path, FACTS._replace(dtype=dtype)) as writer:
            for key, vectors in written.items():
                writer.write(key, vectors)
        with h5py.File(path, "r") as file:
            for key, vectors in written.items():
                assert file[key].dtype == dtype
                assert numpy.array_equal(file[key], vectors.astype(dtype))


def test_the_map_is_one_string_of_json_from_sentences_to_keys(tmp_path: Path) -> None:
    sentences = ["one", 'a "quoted" \\ word', "鹤 在 飞", "🦩 !", "sentence_to_index", "0", "one"]
    path = write_layers(tmp_path / "layers.hdf5", sentences)
    with h5py.File(path, "r") as file:
        assert file["sentence_to_index"].shape == (1,)
        assert h5py.check_string_dtype(file["sentence_to_index"].dtype) == ("utf-8", None)
        assert index_of(file) == {sentence: str(key) for key, sentence in enumerate(sentences)}


def test_a_file_may_do_without_the_map(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["one", "two"], has_index=False)
    with h5py.File(path, "r") as file:
        assert set(file) == {"0", "1"}


def test_the_facts_are_attributes(tmp_path: Path) -> None:
    with h5py.File(write_layers(tmp_path / "layers.hdf5", ["one"]), "r") as file:
        attributes = dict(file.attrs)
        del attributes["checksum"]
        assert attributes == {
            "model": "sha256:0123",
            "export": "sha256:4567",
            "kept": "all",
            "layers": 3,
            "width": 4,
            "dtype": "float32",
            "state": "reset",
        }


def test_vectors_of_another_precision_are_written_as_the_files(tmp_path: Path) -> None:
    numbers = vectors_of("a b c").astype("float64")
    for dtype in ("float32", "float16"):
        path = tmp_path / f"{dtype}.hdf5"
        with LayerFileWriter.open(path, FACTS._replace(dtype=dtype)) as writer:
            writer.write("0", numbers)
            writer.write("1", numbers[:, ::2])
        with h5py.File(path, "r") as file:
            assert file["0"].dtype == dtype
            assert numpy.array_equal(file["0"], numbers.astype(dtype))
            assert numpy.array_equal(file["1"], numbers[:, ::2].astype(dtype))


def test_a_number_that_float16_has_no_room_for_is_an_error(tmp_path: Path) -> None:
    numbers = vectors_of("a b c")
    numbers[1, 2, 3] = 70_000
    with pytest.raises(ConfigurationError, match="'7' have numbers that float16 has no room for"):
        with LayerFileWriter.open(tmp_path / "a.hdf5", FACTS._replace(dtype="float16")) as writer:
            writer.write("7", numbers)


@pytest.mark.parametrize("compression", ["gzip", "lzf"])
def test_vectors_are_compressed(compression: str, tmp_path: Path) -> None:
    with LayerFileWriter.open(tmp_path / "a.hdf5", FACTS, compression=compression) as writer:
        writer.write("0", numpy.ones((3, 50, 4)))
        writer.write("1", numpy.ones((3, 0, 4)))
    with h5py.File(tmp_path / "a.hdf5", "r") as file:
        assert file["0"].compression == compression
        assert numpy.array_equal(file["0"], numpy.ones((3, 50, 4)))
        assert file["1"].shape == (3, 0, 4)


def test_an_unknown_compression_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="among gzip, lzf, or none, but got 'zip'"):
        with LayerFileWriter.open(tmp_path / "a.hdf5", FACTS, compression="zip"):
            pass


def test_a_sentence_without_tokens_is_written(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "layers.hdf5", ["", "one"])
    with h5py.File(path, "r") as file:
        assert file["0"].shape == (3, 0, 4)


@pytest.mark.parametrize("key", ["", ".", "1/2 cup", "/", "a\0b"])
def test_a_key_that_hdf5_would_not_keep_is_an_error(key: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="HDF5 can't have .* as a key"):
        write_layers(tmp_path / "layers.hdf5", ["one"], keys=[key])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_key_that_is_there_already_is_an_error(
    compression: Optional[str], tmp_path: Path
) -> None:
    path = tmp_path / "layers.hdf5"
    with pytest.raises(ConfigurationError, match="the key 'one' is there already"):
        with LayerFileWriter.open(path, FACTS, compression=compression) as writer:
            for key in ("one", "two", "one"):
                writer.write(key, numpy.zeros((3, 5, 4)))
    assert os.listdir(tmp_path) == []


def test_vectors_of_another_shape_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"admits no vectors of the shape \(2, 5, 4\)"):
        with LayerFileWriter.open(tmp_path / "layers.hdf5", FACTS) as writer:
            writer.write("0", numpy.zeros((2, 5, 4)))


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_parts_are_joined(compression: Optional[str], tmp_path: Path) -> None:
    sentences = [f"sentence {number % 7} ." for number in range(20)] + [""]
    keys = [str(key) for key in range(len(sentences))]
    for start in range(0, len(keys), 8):
        with LayerFileWriter.open(
            tmp_path / f"part {start}.hdf5", FACTS, compression=compression
        ) as part:
            for key in keys[start : start + 8]:
                part.write(key, vectors_of(sentences[int(key)]))
            part.write_index(zip(sentences[start : start + 8], keys[start : start + 8]))
    with LayerFileWriter.open(tmp_path / "joined.hdf5", FACTS) as writer:
        for start in range(0, len(keys), 8):
            writer.copy_from(tmp_path / f"part {start}.hdf5")
        writer.write_index(zip(sentences, keys))
    whole = write_layers(tmp_path / "whole.hdf5", sentences)
    with h5py.File(tmp_path / "joined.hdf5", "r") as joined, h5py.File(whole, "r") as expected:
        assert set(joined) == set(expected)
        assert dict(joined.attrs) == dict(expected.attrs)
        for key in keys:
            assert numpy.array_equal(joined[key], expected[key])
            assert joined[key].dtype == expected[key].dtype
        assert joined["0"].compression == compression
        assert joined["sentence_to_index"][0] == expected["sentence_to_index"][0]


def test_a_large_part_is_copied_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "COPIED_AT_ONCE", 3)
    opened: List[Path] = []
    original = reader.opened

    def listening(path: Path) -> h5py.File:
        opened.append(path)
        return original(path)

    monkeypatch.setattr(reader, "opened", listening)
    sentences = [f"{number} words" for number in range(8)]
    part = write_layers(tmp_path / "part.hdf5", sentences)
    with LayerFileWriter.open(tmp_path / "copy.hdf5", FACTS) as writer:
        writer.copy_from(part)
    assert opened == [part] * 4  # the last time for the sum of checksums
    with h5py.File(tmp_path / "copy.hdf5") as copy, h5py.File(part) as whole:
        assert set(copy) == {*map(str, range(8))}
        assert all(numpy.array_equal(copy[key], whole[key]) for key in copy)


def test_a_part_of_another_export_is_an_error(tmp_path: Path) -> None:
    part = write_layers(tmp_path / "part.hdf5", ["one"], FACTS._replace(state="carry"))
    with pytest.raises(ConfigurationError, match="part.hdf5: .*`state` is 'carry' here.*'reset'"):
        with LayerFileWriter.open(tmp_path / "joined.hdf5", FACTS) as writer:
            writer.copy_from(part)
    assert os.listdir(tmp_path) == ["part.hdf5"]


def test_a_part_that_comes_twice_is_an_error(tmp_path: Path) -> None:
    part = write_layers(tmp_path / "part.hdf5", ["one", "two"])
    with pytest.raises(ConfigurationError, match="the key '0' is there already"):
        with LayerFileWriter.open(tmp_path / "joined.hdf5", FACTS) as writer:
            writer.copy_from(part)
            writer.copy_from(part)


def test_a_part_with_a_link_is_an_error(tmp_path: Path) -> None:
    part = write_layers(tmp_path / "part.hdf5", ["one"])
    with h5py.File(part, "r+") as file:
        file["1"] = h5py.ExternalLink(str(part), "0")
    with pytest.raises(ConfigurationError, match="part.hdf5: '1': expected vectors.*a link"):
        with LayerFileWriter.open(tmp_path / "joined.hdf5", FACTS) as writer:
            writer.copy_from(part)


def test_a_map_that_is_too_long_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LONGEST_STRING", 20)
    with pytest.raises(ConfigurationError, match="has 24 bytes, but HDF5 allows no more than 20"):
        write_layers(tmp_path / "layers.hdf5", ["one", "two"])


def test_an_error_leaves_the_older_file(tmp_path: Path) -> None:
    path = tmp_path / "layers.hdf5"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        with LayerFileWriter.open(path, FACTS) as writer:
            writer.write("0", vectors_of("one"))
            raise ZeroDivisionError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["layers.hdf5"]


@pytest.mark.exhaustive
@has_such_a_limit
def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    assert (
        printed_by(FILL_THE_DISK, tmp_path) == "[Errno 27] File too large: 'layers.hdf5' []\n" * 15
    )


def test_a_folder_in_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected a file to write to, but it is a folder"):
        with LayerFileWriter.open(tmp_path, FACTS):
            pass


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="the folder .*nowhere doesn't exist"):
        with LayerFileWriter.open(tmp_path / "nowhere" / "layers.hdf5", FACTS):
            pass


def test_a_folder_that_cannot_be_written_to_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Permissions don't stop the superuser, as whom tests may run.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ConfigurationError, match="can't be written to"):
        with LayerFileWriter.open(tmp_path / "layers.hdf5", FACTS):
            pass
    assert os.listdir(tmp_path) == []


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak there")
def test_memory_does_not_grow_with_the_sentences(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from elmo_scratch.interop import LayerFileFacts, LayerFileWriter\n"
        "count = int(sys.argv[1])\n"
        "facts = LayerFileFacts('', '', 'all', None, 3, 4, 'float32', 'reset')\n"
        "sentences = ((f'{number} ' + 'word ' * 100, str(number)) for number in range(count))\n"
        "with LayerFileWriter.open('layers.hdf5', facts) as writer:\n"
        "    writer.write_index(sentences)\n"
        # Its own peak, in KiB: `getrusage` would tell that of the process that started it.
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    peaks = [
        int(
            subprocess.run(
                [sys.executable, "-c", program, str(count)],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for count in (100, 100_000)
    ]
    # The map has some 50,000 KiB.
    assert os.path.getsize(tmp_path / "layers.hdf5") > 50_000 * 1024
    assert peaks[1] - peaks[0] < 15_000
    with LayerFile(tmp_path / "layers.hdf5") as layers:
        assert sum(1 for _ in layers.sentences()) == 100_000
