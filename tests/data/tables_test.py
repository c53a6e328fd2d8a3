import gzip
import logging
from pathlib import Path
from typing import Any, List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data import SentencesReader
from elmo_scratch.data.corpus import PreparedCorpus, check_no_table, is_table
from elmo_scratch.data.lines import LOOKED_AT, ending_of, split_lines, tell_rows
from elmo_scratch.data.sentence_forms import form_by_name, text_sentences
from tests import FIXTURES_ROOT

NEWS = FIXTURES_ROOT / "news" / "dev.csv"


@pytest.mark.parametrize(
    "name, ending",
    [
        ("T.CSV", ".csv"),
        ("news.Csv.GZ", ".csv"),
        ("news.csv.zst", ".csv"),
        ("https://host/News.CSV?raw=1#top", ".csv"),
        ("csv", ""),
        ("news.csv.txt", ".txt"),
    ],
)
def test_the_ending_of_a_name_has_no_case_and_nothing_packed(name: str, ending: str) -> None:
    assert ending_of(name) == ending
    assert is_table(name) == (ending == ".csv")


def test_forms_are_found_by_endings_of_any_case() -> None:
    assert form_by_name("UD.CONLLU.gz") == "conllu"
    assert form_by_name("runs/Cut.JSONL") == "jsonl"


def test_a_table_is_read_as_one_however_its_name_is_written(tmp_path: Path) -> None:
    (tmp_path / "T.CSV").write_bytes(NEWS.read_bytes())
    (tmp_path / "T.CSV.GZ").write_bytes(gzip.compress(NEWS.read_bytes()))
    expected = _texts(NEWS)
    assert len(expected) == 80
    for name in ("T.CSV", "T.CSV.GZ"):
        assert _texts(tmp_path / name) == expected
        with pytest.raises(ConfigurationError, match="but this is a table"):
            check_no_table([tmp_path / name])


def test_lines_like_those_of_a_table_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = tmp_path / "news.txt"
    text.write_bytes(NEWS.read_bytes())
    told = f"{text}: the lines look like rows of a table with 3 columns"
    with caplog.at_level(logging.WARNING):
        assert len(_texts(text)) == 80 and len(_texts(text)) == 80
    assert caplog.text.count(told) == 1  # each epoch reads it


def test_so_is_a_corpus_of_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = tmp_path / "corpus.txt"
    text.write_text("".join(f"{number};a;the river rose\n" for number in range(7)), "utf-8")
    with caplog.at_level(logging.WARNING):
        PreparedCorpus.of(str(text))
    assert f"{text}: the lines look like rows of a table with 3 columns" in caplog.text


@pytest.mark.parametrize(
    "lines, kind",
    [
        (["label\tthe river rose"] * 6, "rows of a table with 2 columns"),
        (['{"text": "the river"}'] * 6, "objects of JSON"),
        (["# text = a", "1\tthe\tthe", "2\triver\triver", "3\trose\trise", ""] * 3, "3 columns"),
        (['1,"a, b","the river\n', 'rose"\n'] * 12, "rows of a table with 3 columns"),
    ],
)
def test_lines_of_other_kinds_are_told_too(
    lines: List[str], kind: str, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    name = request.node.name
    with caplog.at_level(logging.WARNING):
        assert len(list(text_sentences(lines, name))) == len(lines)
    assert f"{name}: the lines look like " in caplog.text and kind in caplog.text


def test_sentences_are_no_table(caplog: pytest.LogCaptureFixture) -> None:
    lines = ["Yes , the river , it rose .", '" The bank , " she said , " lent . "', "No , no ."]
    with caplog.at_level(logging.WARNING):
        list(text_sentences(lines * 7, "sentences"))
        list(text_sentences(["a , b , c ."] * 4, "few"))
        for text in sorted((FIXTURES_ROOT / "text").glob("*.txt")):
            list(split_lines(text))
    assert "look like" not in caplog.text


def test_lines_are_given_as_they_come() -> None:
    def lines() -> Any:
        for number in range(LOOKED_AT + 2):
            given.append(number)
            yield f"{number} the river\n"

    given: List[int] = []
    sentences = text_sentences(lines(), "pipe")
    assert next(sentences).tokens == ["0", "the", "river"] and given == [0]
    assert len(list(sentences)) == LOOKED_AT + 1


def _texts(path: Path) -> List[str]:
    instances = SentencesReader().read(str(path))
    return [" ".join(token.text for token in one["sentence"].tokens) for one in instances]


@pytest.mark.parametrize(
    "lines",
    [
        [f"{mark}{3_000 * 'word '}\n" for mark in ('"', *(15 * [""]))],
        ["a b\rc d\n"] * 9,
    ],
    ids=["a quote that opens", "line ends of a Mac"],
)
def test_text_that_is_no_table_at_all_is_text(
    lines: List[str], caplog: pytest.LogCaptureFixture
) -> None:
    tell_rows(lines, "text.txt")
    assert not caplog.records
