import io
import random
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List

import h5py
import numpy
import pytest

from elmo_scratch.interop import LayerFile
from elmo_scratch.interop.layer_files.hdf5 import CheckedInput, open_hdf5
from tests.forked import run_forked
from tests.interop.layer_files.tiny_layers import write_layers


def content_of(libver: str) -> bytes:
    """A file whose trees have two levels, and with more texts than fit beside each other."""
    made = io.BytesIO()
    with h5py.File(made, "w", libver=libver) as file:
        for number in range(300):
            file[str(number)] = numpy.full(2, number, "f4")
        file.create_dataset("chunks", data=numpy.arange(67.0, dtype="f4"), chunks=(1,))
        for number in range(11):
            file.attrs[f"text {number}"] = number * "text "
    return made.getvalue()


OLD = content_of("earliest")
CONTENTS = [OLD, content_of("latest")]


def all_of(file: h5py.File) -> Dict[str, Any]:
    """The texts, names and numbers of a file."""
    stored = file["chunks"].id.get_storage_size()
    numbers = {name: file[name][...].tolist() for name in (*list(file)[:3], "chunks")}
    return {**file.attrs, **numbers, "names": list(file), "stored": stored}


def read(content: bytes, path: Path) -> Dict[str, Any]:
    path.write_bytes(content)
    with open_hdf5(path) as file:
        return all_of(file)


@pytest.mark.parametrize("content", CONTENTS, ids=["earliest", "latest"])
def test_a_file_is_read_as_hdf5_itself_reads_it(content: bytes, tmp_path: Path) -> None:
    with h5py.File(io.BytesIO(content)) as file:
        assert read(content, tmp_path / "file.hdf5") == all_of(file)


def objects(content: bytes) -> List[int]:
    """The places of the objects in the first global heap; the last one is the free space."""
    places = [content.index(b"GCOL") + 16]
    while (head := struct.unpack_from("<HH4xQ", content, places[-1]))[0]:
        places.append(places[-1] + 16 + head[2] + -head[2] % 8)
    return places


HEAP = OLD.index(b"HEAP")
FREE, DATA = struct.unpack_from("<QQ", OLD, HEAP + 16)
"""Where the first free block lies in the heap of names, and where that begins."""

NAMES, CHUNKS = (OLD.index(b"TREE" + bytes([kind, 1])) for kind in (0, 1))
"""The roots of two trees."""

ENDLESS = {
    "free space of no size": (objects(OLD)[-1] + 8, 0),
    "a text so long that its end is its beginning": (objects(OLD)[0] + 8, 2**64 - 16),
    "a free block before itself": (DATA + FREE, FREE),
    "a tree of names in itself": (NAMES + 32, NAMES),
    "a tree of chunks in itself": (CHUNKS + 48, CHUNKS),
}
"""Where a file is changed so that HDF5 2.0.0 never ends or crashes, and what is written there."""


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends_in_hdf5_is_an_error(name: str, tmp_path: Path) -> None:
    content = bytearray(OLD)
    struct.pack_into("<Q", content, *ENDLESS[name])
    with pytest.raises(ValueError, match="doesn't end|don't end"):
        read(bytes(content), tmp_path / "file.hdf5")


FIELDS = [
    *((0, place + step) for place in objects(OLD) for step in (0, 8)),
    *((0, HEAP + step) for step in (8, 16, 24)),
    *((0, DATA + FREE + step) for step in (0, 8)),
    *((0, tree + step) for tree in (NAMES, CHUNKS) for step in (5, 6, 32, 48, 64)),
    *((1, place + step) for place in objects(CONTENTS[1]) for step in (0, 8)),
]
"""The numbers that lead from block to block: which file, and their places."""

NUMBERS = [0, 1, 8, 16, 24, FREE, NAMES, CHUNKS, *(2**64 - small for small in (1, 16, 20))]


def read_damaged(path: Path, chance: random.Random) -> None:
    which, place = chance.choice(FIELDS)
    content = bytearray(CONTENTS[which])
    size = chance.choice([1, 2, 8])
    number = chance.choice([*NUMBERS, chance.getrandbits(64)]) % 256**size
    content[place : place + size] = number.to_bytes(size, "little")
    # h5py has every kind of error for damage. Here it counts that the process goes on.
    with suppress(Exception):
        read(bytes(content), path)


def read_many_damaged(path: Path) -> None:
    for number in range(100):
        read_damaged(path, random.Random(number))


def test_any_damage_is_an_answer_or_an_error(tmp_path: Path) -> None:
    ended = run_forked(lambda: read_many_damaged(tmp_path / "file.hdf5"), tmp_path / "errors.txt")
    assert ended.status == 0, ended.errors


def test_addresses_of_other_sizes_are_an_error(tmp_path: Path) -> None:
    creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    creation.set_sizes(4, 4)
    h5py.h5f.create(str(tmp_path / "file.hdf5").encode(), fcpl=creation).close()
    with pytest.raises(ValueError, match="expected addresses of 8 bytes"):
        open_hdf5(tmp_path / "file.hdf5")


def test_an_image_of_the_cache_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file.hdf5").write_bytes(OLD + b"MDCI" + bytes(60))
    file = CheckedInput(tmp_path / "file.hdf5")
    file.seek(len(OLD))
    with pytest.raises(ValueError, match="expected no image of HDF5's cache"):
        file.readinto(bytearray(64))


def test_texts_that_share_their_bytes_are_an_error(tmp_path: Path) -> None:
    """Each of a thousand heaps is a text of the one before, and all that follow are texts of it."""
    head = struct.pack("<4sB3xQHH4xQ", b"GCOL", 1, 2**40, 1, 0, 16)
    (tmp_path / "file.hdf5").write_bytes(OLD + 1000 * head + bytes(16))
    file = CheckedInput(tmp_path / "file.hdf5")
    with pytest.raises(ValueError, match="too many share the same bytes"):
        for number in range(1000):
            file.seek(len(OLD) + number * len(head))
            file.readinto(bytearray(len(head)))


def test_an_interruption_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(file: CheckedInput, buffer: Any) -> int:
        raise KeyboardInterrupt

    with LayerFile(write_layers(tmp_path / "layers.hdf5", ["The river rose ."])) as layers:
        with monkeypatch.context() as patch:
            patch.setattr(CheckedInput, "readinto", interrupt)
            with pytest.raises(KeyboardInterrupt):
                layers.read("0")
        assert layers.read("0").shape == (3, 4, 4)


def test_a_process_may_end_before_a_file_is_closed(tmp_path: Path) -> None:
    (tmp_path / "file.hdf5").write_bytes(OLD)
    program = f"""
from pathlib import Path
from elmo_scratch.interop.layer_files.hdf5 import open_hdf5
import sys
sys.kept = open_hdf5(Path({str(tmp_path / "file.hdf5")!r}))
sys.kept["3"][...]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
