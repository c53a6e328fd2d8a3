import gzip
import tarfile
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.lines import split_lines, text_lines
from tests import FIXTURES_ROOT


def test_lines_end_as_in_pythons_own_text_files_and_ends_stay_on(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("a\u2028b\x85c\x0cd\n\r\n\ne\rf".encode("utf-8"))
    assert list(text_lines(path)) == ["a\u2028b\x85c\x0cd\n", "\r\n", "\n", "e\r", "f"]


def test_the_lines_are_those_that_open_gives(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("old\rMac\r\rmixed\r\n\r\nends\n\x0b\x1c\u2029\rlast".encode("utf-8"))
    with path.open(encoding="utf-8", newline="") as file:
        assert list(text_lines(path)) == list(file)


def test_a_tar_archive_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "member").write_text("the river\n")
    for mode in ("w", "w:gz"):
        with tarfile.open(tmp_path / "tar", mode) as archive:
            archive.add(tmp_path / "member")
        with pytest.raises(ConfigurationError, match="text: expected text, but this is a tar arch"):
            list(text_lines(tmp_path / "tar", "text"))


def test_a_byte_order_mark_is_dropped_at_the_beginning_and_only_there(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("\ufeffone\n\ufefftwo\n".encode("utf-8"))
    assert list(text_lines(path)) == ["one\n", "\ufefftwo\n"]


def test_a_path_may_be_a_string() -> None:
    lines = list(text_lines(str(FIXTURES_ROOT / "text" / "tour.txt")))
    assert len(lines) == 12


def test_an_empty_file_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "nothing.txt"
    path.touch()
    with pytest.raises(ConfigurationError, match="nothing.txt: expected at least one line"):
        list(text_lines(path))


def test_bytes_that_are_not_utf8_are_an_error_that_names_line_and_byte(tmp_path: Path) -> None:
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"caf\xc3\xa9\n\na caf\xe9\nthe end\n")  # valid in line 1, not in line 3
    lines = text_lines(path)
    assert [next(lines), next(lines)] == ["café\n", "\n"]
    with pytest.raises(ConfigurationError, match="latin1.txt, line 3: .* byte 6 .* 0xe9"):
        next(lines)


def test_a_character_that_the_file_end_cuts_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "cut.txt"
    path.write_bytes(b"one\ncaf\xc3")
    with pytest.raises(ConfigurationError, match="cut.txt, line 2: .* byte 4 .* 0xc3"):
        list(text_lines(path))


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="gone.txt: there is no such file"):
        list(text_lines(tmp_path / "gone.txt"))


def test_a_file_that_breaks_off_while_it_is_read_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="/mem: cannot be read .Input/output error"):
        list(text_lines("/proc/self/mem"))


def test_a_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder.txt"
    folder.mkdir()
    with pytest.raises(ConfigurationError, match="folder.txt: cannot be read"):
        list(text_lines(folder))


def test_a_packed_file_has_the_lines_of_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress("\ufeffone\nzwölf".encode("utf-8")))
    assert list(text_lines(path)) == ["one\n", "zwölf"]


def test_a_damaged_packed_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress(b"one\n" * 9)[:20])
    with pytest.raises(ConfigurationError, match="text.txt.gz: the compressed file is damaged"):
        list(text_lines(path))


def test_the_words_of_lines_are_split_at_white_space_and_blank_lines_passed_over(
    tmp_path: Path,
) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n one\ttwo  three \n \nfour", encoding="utf-8")
    assert list(split_lines(path)) == [["one", "two", "three"], ["four"]]


def test_a_file_of_blank_lines_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "blank.txt"
    path.write_text("\n \n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="blank.txt: expected sentences, but no line"):
        list(split_lines(path))
