from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.readers import CLASS_NAMES, AgNewsRow, ag_news_rows
from tests import FIXTURES_ROOT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "news.csv"


def test_a_row_is_a_class_a_title_and_a_description(path: Path) -> None:
    path.write_text('"3","Oil Up","Oil rose."\n"1","Talks","They met."\n')
    assert list(ag_news_rows(path)) == [
        AgNewsRow(label="Business", title="Oil Up", description="Oil rose."),
        AgNewsRow(label="World", title="Talks", description="They met."),
    ]


def test_the_four_numbers_stand_for_the_classes_of_the_data_set(path: Path) -> None:
    path.write_text('"1","t","d"\n"2","t","d"\n"3","t","d"\n"4","t","d"\n')
    labels = [row.label for row in ag_news_rows(path)]
    assert labels == ["World", "Sports", "Business", "Sci/Tech"] == list(CLASS_NAMES.values())


def test_quotes_may_hold_commas_quotes_and_line_breaks(path: Path) -> None:
    path.write_text('"2","One, two","She said ""go"".\nThey went."\n4,plain,no quotes\n')
    assert list(ag_news_rows(path)) == [
        AgNewsRow("Sports", "One, two", 'She said "go".\nThey went.'),
        AgNewsRow("Sci/Tech", "plain", "no quotes"),
    ]


def test_a_backslash_is_a_line_break(path: Path) -> None:
    path.write_text('"1","A \\title","First line.\\Second line.\\"\n')
    assert list(ag_news_rows(path)) == [
        AgNewsRow("World", "A \ntitle", "First line.\nSecond line.")
    ]


def test_windows_line_ends_and_blank_lines_are_no_part_of_a_row(path: Path) -> None:
    path.write_bytes(b'"1","t","d"\r\n\r\n"2","u","e"\r\n')
    assert list(ag_news_rows(path)) == [AgNewsRow("World", "t", "d"), AgNewsRow("Sports", "u", "e")]


def test_a_byte_order_mark_is_no_part_of_the_first_class(path: Path) -> None:
    path.write_bytes(b'\xef\xbb\xbf"1","t","d"\n')
    assert list(ag_news_rows(path)) == [AgNewsRow("World", "t", "d")]


@pytest.mark.parametrize("file_name, num_rows", [("train.csv", 240), ("dev.csv", 80)])
def test_the_fixtures_have_as_many_rows_as_their_origin_says(file_name: str, num_rows: int) -> None:
    labels = [row.label for row in ag_news_rows(FIXTURES_ROOT / "news" / file_name)]
    assert len(labels) == num_rows
    assert {labels.count(label) for label in CLASS_NAMES.values()} == {num_rows // 4}


def test_a_row_with_two_columns_is_an_error_that_names_its_line() -> None:
    rows = ag_news_rows(FIXTURES_ROOT / "bad" / "missing_column.csv")
    assert [next(rows).label for _ in range(3)] == ["World", "Sports", "Business"]
    with pytest.raises(ConfigurationError, match="missing_column.csv, line 4: .* but found 2"):
        next(rows)


def test_a_row_with_four_columns_is_an_error_that_names_its_line(path: Path) -> None:
    path.write_text('"1","t","d"\n"1","t","d","more"\n')
    with pytest.raises(ConfigurationError, match="news.csv, line 2: .* but found 4"):
        list(ag_news_rows(path))


def test_a_row_over_several_lines_is_named_by_its_last(path: Path) -> None:
    path.write_text('"1","t","d"\n"1","one\ntwo\nthree"\n')
    with pytest.raises(ConfigurationError, match="news.csv, line 4: .* but found 2"):
        list(ag_news_rows(path))


def test_a_class_outside_the_four_is_an_error_that_names_its_line() -> None:
    rows = ag_news_rows(FIXTURES_ROOT / "bad" / "bad_class.csv")
    assert [next(rows).label for _ in range(2)] == ["Sci/Tech", "Business"]
    with pytest.raises(ConfigurationError, match="bad_class.csv, line 3: .* but found '5'"):
        next(rows)


@pytest.mark.parametrize("number", ["0", "5", "-1", "1.0", " 1", "", "World"])
def test_no_other_spelling_of_a_class_is_accepted(path: Path, number: str) -> None:
    path.write_text(f'"{number}","t","d"\n')
    with pytest.raises(ConfigurationError, match=f"line 1: .* but found '{number}'"):
        list(ag_news_rows(path))


@pytest.mark.parametrize("header", ["Class Index,Title,Description", '"label","title","text"'])
def test_a_header_is_skipped(path: Path, header: str) -> None:
    path.write_text(f'\ufeff\n{header}\n"1","t","d"\n', "utf-8")
    assert list(ag_news_rows(path)) == [AgNewsRow("World", "t", "d")]


def test_the_log_tells_of_a_header_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text('Class Index,Title,Description\n"1","t","d"\n')
    with caplog.at_level("INFO", "elmo_scratch.data.readers"):
        for _ in range(2):
            list(ag_news_rows(path))
    told = f"{path}: skipped the header row Class Index,Title,Description"
    assert [record.getMessage() for record in caplog.records] == [told]


def test_a_header_below_another_row_is_an_error(path: Path) -> None:
    header = "Class Index,Title,Description\n"
    for first in (header, '"1","t","d"\n'):
        path.write_text(first + header)
        with pytest.raises(ConfigurationError, match="line 2: .*, but found 'Class Index'"):
            list(ag_news_rows(path))


def test_a_first_row_of_other_names_is_an_error_that_shows_a_header(path: Path) -> None:
    path.write_text('Class,Description,Title\n"1","t","d"\n')
    with pytest.raises(ConfigurationError, match="line 1: .* Class Index,Title,Desc.* 'Class'"):
        list(ag_news_rows(path))


def test_a_header_alone_is_an_error(path: Path) -> None:
    path.write_text("Class Index,Title,Description\n")
    with pytest.raises(ConfigurationError, match="expected rows of class, title and description"):
        list(ag_news_rows(path))


def test_text_that_is_not_utf8_is_an_error_that_names_its_line() -> None:
    rows = ag_news_rows(FIXTURES_ROOT / "bad" / "not_utf8.csv")
    assert [next(rows).label for _ in range(2)] == ["World", "Sports"]
    with pytest.raises(ConfigurationError, match="not_utf8.csv, line 3: expected UTF-8 .* 0xe9"):
        next(rows)


def test_an_empty_file_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigurationError, match="empty.csv: .* but it is empty"):
        list(ag_news_rows(FIXTURES_ROOT / "bad" / "empty.csv"))


def test_a_file_of_blank_lines_is_an_error_that_names_it(path: Path) -> None:
    path.write_text("\n\r\n\n")
    with pytest.raises(ConfigurationError, match="news.csv: expected rows .* but found none"):
        list(ag_news_rows(path))


@pytest.mark.parametrize("text", ['"1","t","never closed\n"2","t","d"\n', '"1","t","d" and more\n'])
def test_a_broken_quote_is_an_error_that_names_the_file(path: Path, text: str) -> None:
    path.write_bytes(text.encode())
    with pytest.raises(ConfigurationError, match="news.csv, line [12]: not a valid comma-sep"):
        list(ag_news_rows(path))


def test_a_long_text_is_read(path: Path) -> None:
    text = "ab " * 50_000 + "c"
    path.write_text(f'"1","t","{text}"\n')
    assert [row.description for row in ag_news_rows(path)] == [text]


def test_carriage_returns_end_rows_too_but_not_in_quotes(path: Path) -> None:
    path.write_bytes(b'"1","t","one\rtwo"\r"2","u","three"\r')
    assert [row.description for row in ag_news_rows(path)] == ["one\rtwo", "three"]
