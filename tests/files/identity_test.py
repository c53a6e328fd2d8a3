import hashlib
import os
from pathlib import Path
from typing import List, Optional

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.files import identity
from elmo_scratch.files.identity import ReadFiles, identity_of


@pytest.fixture
def paths(tmp_path: Path) -> List[Path]:
    (tmp_path / "one").write_bytes(b"options")
    (tmp_path / "two").write_bytes(b"weights" * 5)
    return [tmp_path / "one", tmp_path / "two"]


def test_a_file_is_known_by_any_name(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for file in (one, other):
        file.write_text("same")
    (tmp_path / "link").symlink_to(one)
    files = ReadFiles([one])
    assert files.hold(one) and files.hold(tmp_path / "link")
    assert not files.hold(other) and not files.hold(tmp_path / "none")
    one.unlink()
    assert not files.hold(other)


def test_one_file_has_the_number_that_other_tools_print(
    paths: List[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "READ_AT_ONCE", 4)
    expected = hashlib.sha256(paths[1].read_bytes()).hexdigest()
    assert identity_of(paths[1:]) == f"sha256:{expected}"


def test_equal_files_have_one_identity_wherever_they_lie(paths: List[Path], tmp_path: Path) -> None:
    copies = [tmp_path / "a", tmp_path / "b"]
    for path, copy in zip(paths, copies, strict=True):
        copy.write_bytes(path.read_bytes())
    assert identity_of(paths) == identity_of(copies)


def test_another_byte_another_order_and_another_border_are_another_identity(
    paths: List[Path],
) -> None:
    found = {identity_of(paths), identity_of(paths[::-1]), identity_of(paths[:1])}
    paths[0].write_bytes(b"optionsw")
    paths[1].write_bytes(b"eights" + b"weights" * 4)
    found.add(identity_of(paths))
    paths[1].write_bytes(b"Eights" + b"weights" * 4)
    found.add(identity_of(paths))
    assert len(found) == 5


def test_files_that_were_read_are_found_from_another_folder(
    paths: List[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = ReadFiles([Path("one"), Path("two")])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert files.identity == identity_of(paths)
    paths[0].unlink()  # It is known by now.
    assert files.identity.startswith("sha256:")


@pytest.mark.parametrize("other", [b"WEIGHTS" * 5, b"", None])
def test_files_that_others_have_replaced_are_an_error(
    other: Optional[bytes], paths: List[Path], tmp_path: Path
) -> None:
    files = ReadFiles(paths)
    paths[1].unlink()
    if other is not None:
        (tmp_path / "other").write_bytes(other)
        (tmp_path / "other").rename(paths[1])
        os.utime(paths[1], (0, 0))  # Clocks may tick slowly.
    with pytest.raises(ConfigurationError, match="two: changed or removed since the biLM was read"):
        print(files.identity)
