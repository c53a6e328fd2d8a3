import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import LayerFile, LayerFileWriter
from elmo_scratch.interop.layer_files.facts import (
    LayerFileFacts,
    facts_checksum,
    numbers_checksum,
    text_checksum,
)
from tests.interop.layer_files.tiny_layers import FACTS, vectors_of, write_layers

SENTENCES = ["The river", "", "A bank of the river", "The river"]
GOLDEN = Path("tests") / "golden" / "layers"


def stored_sum(path: Path) -> int:
    with h5py.File(path) as file:
        return int(file.attrs["checksum"])


def test_the_checksum_of_a_data_set_is_that_of_its_name_and_its_bytes() -> None:
    numbers = numpy.array([1.0, -2.0], "<f4")  # 0000803f 000000c0
    expected = zlib.crc32(b"7" + bytes.fromhex("0000803f000000c0"))
    assert numbers_checksum(b"7", [numbers]) == expected
    assert numbers_checksum(b"7", [numbers[:1], numbers[1:]]) == expected
    assert numbers_checksum(b"8", [numbers]) != expected
    assert text_checksum([b"123", b"456789"]) == 0xCBF43926  # the check value of CRC-32
    known = FACTS._replace(model="é")
    assert facts_checksum(known) == zlib.crc32(
        b'{"dtype": "float32", "export": "sha256:4567", "kept": "all", "layers": 3, '
        b'"model": "\\u00e9", "state": "reset", "width": 4}'
    )


def test_a_file_stores_the_sum_of_all(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "x.hdf5", SENTENCES)
    with h5py.File(path) as file:
        index = file["sentence_to_index"][0]
    numbers = [
        numbers_checksum(str(number).encode(), [vectors_of(sentence)])
        for number, sentence in enumerate(SENTENCES)
    ]
    expected = facts_checksum(FACTS) + text_checksum([index]) + sum(numbers)
    assert stored_sum(path) == expected
    LayerFile(path).check()


@pytest.mark.parametrize(
    "facts, compression",
    [
        (FACTS._replace(dtype="float16"), None),
        (FACTS._replace(kept="top", pool="max"), None),
        (FACTS, "gzip"),
        (FACTS, "lzf"),
    ],
)
def test_every_form_is_checked(facts: LayerFileFacts, compression: Any, tmp_path: Path) -> None:
    sentences = ["The river", "A bank of the river"]
    with LayerFileWriter.open(tmp_path / "x", facts, compression=compression) as writer:
        for sentence in sentences:
            # A view whose rows don't lie end to end.
            vectors = vectors_of(sentence, facts)
            writer.write(sentence, numpy.asfortranarray(vectors))
    LayerFile(tmp_path / "x").check()
    with h5py.File(tmp_path / "x", "a") as file:
        bent = file[sentences[1]][()]
        bent.flat[3] += 1
        file[sentences[1]][...] = bent
    with pytest.raises(ConfigurationError, match="x: expected the numbers .* copy it again, or"):
        LayerFile(tmp_path / "x").check()


def test_no_byte_can_be_bent_unseen(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "x.hdf5", SENTENCES)
    content = path.read_bytes()

    def read() -> Any:
        with LayerFile(path) as file:
            file.check()
            vectors = [file[number].tobytes() for number in range(len(file))]
            return vectors, sorted(file.sentences()), file.facts

    whole, num_noticed = read(), 0
    start, stop = content.index(vectors_of("The river").tobytes()), len(content)
    # All parts of the file, and each byte of the first numbers.
    for place in (*range(0, stop, 61), *range(start, start + 24)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        try:
            assert read() == whole, place
        except ConfigurationError as error:
            assert str(path) in error.message
            num_noticed += 1
    assert num_noticed >= 24


def test_the_joined_file_has_the_checksum_of_one_that_was_written_at_once(tmp_path: Path) -> None:
    whole = write_layers(tmp_path / "whole.hdf5", SENTENCES)
    with LayerFileWriter.open(tmp_path / "joined.hdf5", FACTS) as writer:
        writer.write_index((sentence, str(number)) for number, sentence in enumerate(SENTENCES))
        for start in (2, 0):
            part = tmp_path / f"part {start}.hdf5"
            keys = [str(start), str(start + 1)]
            write_layers(part, SENTENCES[start : start + 2], keys=keys, has_index=start == 0)
            writer.copy_from(part)
    assert stored_sum(tmp_path / "joined.hdf5") == stored_sum(whole)
    LayerFile(tmp_path / "joined.hdf5").check()


def test_what_is_bent_is_not_copied(tmp_path: Path) -> None:
    part = write_layers(tmp_path / "part.hdf5", SENTENCES)
    content = part.read_bytes()
    for good, bent in (
        (vectors_of("The river").tobytes(), bytes(16)),
        (b'"The river', b'"The rives'),
    ):
        place = content.index(good)
        part.write_bytes(content[:place] + bent + content[place + len(bent) :])
        with pytest.raises(ConfigurationError, match="part.hdf5: expected the numbers"):
            with LayerFileWriter.open(tmp_path / "joined.hdf5", FACTS) as writer:
                writer.copy_from(part)
    assert not (tmp_path / "joined.hdf5").exists()


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("*.hdf5*")))
def test_files_of_older_versions_have_none(name: str, tmp_path: Path) -> None:
    if (GOLDEN / name).is_file():
        with LayerFile(GOLDEN / name) as file:
            file.check()
