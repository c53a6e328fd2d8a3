import os
import re
import stat
import zipfile
from pathlib import Path
from typing import Dict, List, Optional

import numpy
import pytest
from allennlp.common import file_utils
from allennlp.common.checks import ConfigurationError

from elmo_scratch import ElmoEmbedder
from elmo_scratch.interop.named_models import resolve_model
from elmo_scratch.interop.zipped_models import official_files, unpacked
from tests import FIXTURES_ROOT
from tests.local_server import local_server

RESIDUAL = FIXTURES_ROOT / "elmo" / "residual"
OPTIONS, WEIGHTS = ((RESIDUAL / name).read_bytes() for name in ("options.json", "weights.hdf5"))
NLPL: Dict[str, bytes] = {
    "README": b"",
    "meta.json": b"{}",
    "options.json": OPTIONS,
    "model.hdf5": WEIGHTS,
    "vocab.txt": b"<S>\n</S>\n<UNK>\nthe\n",
}
"""The files of a model in NLPL's repository."""


def zip_of(path: Path, members: Dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models" / "zipped"


def error_of(zip_file: Path, folder: Path) -> str:
    with pytest.raises(ConfigurationError) as error:
        unpacked(zip_file, folder)
    assert error.value.message.startswith(f"{zip_file}: ")
    assert not folder.exists() or not [path for path in folder.iterdir() if path.is_dir()]
    return error.value.message


@pytest.mark.parametrize("within", ["", "216/"])
def test_a_model_of_the_repository_is_read(within: str, cache: Path, tmp_path: Path) -> None:
    members = {within + name: content for name, content in NLPL.items()}
    members["__MACOSX/options.json"] = members["__MACOSX/model.hdf5"] = b""
    zip_file = zip_of(tmp_path / "216.zip", members)
    embedder = ElmoEmbedder(weight_file=zip_file)
    sentence = ["The", "river", "bank"]
    expected = ElmoEmbedder(RESIDUAL / "options.json", RESIDUAL / "weights.hdf5")
    vectors = embedder.embed_sentence(sentence)
    assert numpy.array_equal(vectors, expected.embed_sentence(sentence))
    (folder,) = [path for path in cache.iterdir() if path.is_dir()]
    assert folder.name.startswith("216-")
    assert {path.name for path in folder.iterdir()} == {
        "options.json",
        "weights.hdf5",
        "vocab.txt",
        "checksums.json",
        "manifest.json",
    }


def test_it_is_unpacked_once(tmp_path: Path) -> None:
    zip_file = zip_of(tmp_path / "216.zip", NLPL)
    folder = Path(resolve_model(str(zip_file)))
    first = (folder / "weights.hdf5").stat()
    assert resolve_model(str(zip_file)) == str(folder)
    assert (folder / "weights.hdf5").stat().st_mtime_ns == first.st_mtime_ns
    # Another file in its place is another model.
    zip_of(zip_file, {**NLPL, "README": b"another"})
    os.utime(zip_file, (0, 0))
    assert resolve_model(str(zip_file)) != str(folder)


def test_a_zip_file_may_have_the_longest_name(tmp_path: Path) -> None:
    folder = Path(resolve_model(str(zip_of(tmp_path / f"{251 * 'x'}.zip", NLPL))))
    assert (folder / "weights.hdf5").read_bytes() == WEIGHTS


def test_an_address_of_a_zip_file_is_fetched_and_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_utils, "CACHE_DIRECTORY", str(tmp_path / "allennlp"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with local_server() as server:
        server.files["/repository/216.zip"] = zip_of(tmp_path / "a.zip", NLPL).read_bytes()
        folder = Path(resolve_model(f"{server.address}/repository/216.zip"))
    assert (folder / "weights.hdf5").read_bytes() == WEIGHTS


def test_a_model_of_many_languages_is_unpacked_as_it_is(tmp_path: Path) -> None:
    files = ["config.json", "sizes.json", "char.dic", "encoder.pkl", "token_embedder.pkl"]
    zip_file = zip_of(tmp_path / "149.zip", {name: name.encode() for name in [*files, "README"]})
    folder = Path(resolve_model(str(zip_file)))
    assert {path.name for path in folder.iterdir()} == {*files, "checksums.json", "manifest.json"}
    assert (folder / "encoder.pkl").read_bytes() == b"encoder.pkl"


@pytest.mark.parametrize(
    "names, found",
    [
        (["options.json", "model.hdf5"], "model.hdf5"),
        (["options.json", "model.hdf5", "weights.hdf5"], "weights.hdf5"),
        (["options.json", "elmo_small_weights.hdf5"], "elmo_small_weights.hdf5"),
        (["options.json", "a.hdf5", "b.hdf5"], None),
        (["options.json"], None),
        (["model.hdf5"], None),
    ],
)
def test_the_weights_of_a_folder_have_several_names(
    names: List[str], found: Optional[str], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).touch()
    files = official_files(tmp_path)
    assert (None if files is None else files.weights.name) == found


def test_an_unpacked_folder_of_the_repository_is_read(tmp_path: Path) -> None:
    for name, content in NLPL.items():
        (tmp_path / name).write_bytes(content)
    assert ElmoEmbedder(weight_file=tmp_path).embed_sentence(["The"]).shape == (3, 1, 12)


def test_names_lead_nowhere_else(tmp_path: Path) -> None:
    members = {f"../../{name}": content for name, content in NLPL.items()}
    folder = unpacked(zip_of(tmp_path / "evil.zip", members), tmp_path / "in" / "side")
    assert (folder / "options.json").read_bytes() == OPTIONS
    assert {path.name for path in tmp_path.iterdir()} == {"evil.zip", "in"}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    zip_file = zip_of(tmp_path / "evil.zip", {"options.json": OPTIONS})
    with zipfile.ZipFile(zip_file, "a") as file:
        member = zipfile.ZipInfo("model.hdf5")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(member, "/etc/passwd")
    assert error_of(zip_file, tmp_path / "models").endswith("model.hdf5 is a link")


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_scratch.interop.zipped_models.HDF5_ALWAYS", 1000)
    zip_file = zip_of(tmp_path / "bomb.zip", {**NLPL, "model.hdf5": bytes(2**22)})
    message = "the model in it would take [0-9]{7} bytes, but the file has only [0-9]{4,5}"
    assert re.search(message, error_of(zip_file, tmp_path / "models"))


def test_what_the_directory_says_of_stored_bytes_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_scratch.interop.zipped_models.HDF5_ALWAYS", 1000)
    zip_file = zip_of(tmp_path / "bomb.zip", {**NLPL, "model.hdf5": bytes(2**22)})
    content = bytearray(zip_file.read_bytes())
    for found in re.finditer(rb"PK\x01\x02", bytes(content)):
        place = found.start() + 20
        content[place : place + 4] = (2**22).to_bytes(4, "little")
    zip_file.write_bytes(content)
    assert "the model in it would take" in error_of(zip_file, tmp_path / "models")


def test_many_files_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_scratch.interop.zipped_models.HDF5_ALWAYS", 2**20)
    sizes = {f"{number}.json": bytes(2**19) for number in range(8)}
    zip_file = zip_of(tmp_path / "bomb.zip", {"config.json": b"{}", "encoder.pkl": b"", **sizes})
    assert f"would take {8 * 2**19 + 2} bytes" in error_of(zip_file, tmp_path / "models")


def test_places_that_no_file_has_are_an_error(tmp_path: Path) -> None:
    zip_file = zip_of(tmp_path / "216.zip", NLPL)
    content = bytearray(zip_file.read_bytes())
    # Where the directory begins: all other places are counted from what is said of it.
    place = content.rfind(b"PK\x05\x06") + 16
    begin = int.from_bytes(content[place : place + 4], "little")
    content[place : place + 4] = (begin + 2**20).to_bytes(4, "little")
    zip_file.write_bytes(content)
    assert "it can't be unpacked; if" in error_of(zip_file, tmp_path / "models")


def test_a_name_that_is_too_long_for_the_disk_is_an_error(tmp_path: Path) -> None:
    members = {"config.json": b"{}", "encoder.pkl": b"", f"{300 * 'x'}.json": b"{}"}
    zip_file = zip_of(tmp_path / "149.zip", members)
    assert "it can't be unpacked; if" in error_of(zip_file, tmp_path / "models")


def test_a_size_that_lies_is_an_error(tmp_path: Path) -> None:
    zip_file = zip_of(tmp_path / "lies.zip", NLPL)
    size = len(WEIGHTS)
    content = zip_file.read_bytes()
    true, false = size.to_bytes(4, "little"), (size - 1).to_bytes(4, "little")
    assert content.count(true) == 2
    zip_file.write_bytes(content.replace(true, false))
    assert "can't be unpacked; if it was downloaded, the download may be incomplete" in error_of(
        zip_file, tmp_path / "models"
    )


def test_an_encrypted_file_is_an_error(tmp_path: Path) -> None:
    zip_file = zip_of(tmp_path / "216.zip", NLPL)
    content = bytearray(zip_file.read_bytes())
    # The first bit of the flags, in the header of each member and in the directory.
    for header, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for found in re.finditer(re.escape(header), bytes(content)):
            content[found.start() + place] |= 1
    zip_file.write_bytes(content)
    assert "it can't be unpacked; if" in error_of(zip_file, tmp_path / "models")


@pytest.mark.parametrize("length", [0, 100, -100, -1])
def test_a_zip_file_that_was_cut_short_is_an_error(length: int, tmp_path: Path) -> None:
    zip_file = zip_of(tmp_path / "216.zip", NLPL)
    zip_file.write_bytes(zip_file.read_bytes()[:length])
    assert "expected the zip file of a model, but it can't be unpacked; if" in error_of(
        zip_file, tmp_path / "models"
    )


@pytest.mark.parametrize("count", [0, 2])
def test_a_zip_file_holds_one_model(count: int, tmp_path: Path) -> None:
    members = {f"{n}/{name}": NLPL[name] for n in range(count) for name in NLPL}
    zip_file = zip_of(tmp_path / "216.zip", {"README": b"", **members})
    assert error_of(zip_file, tmp_path / "models").endswith(f"has them, but it holds {count}")
