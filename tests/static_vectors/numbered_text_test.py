import csv
import gzip
from pathlib import Path
from typing import Any, Iterable, List

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import LabelField, ListField, TextField
from allennlp.data.tokenizers import WhitespaceTokenizer

from elmo_scratch.data import AgNewsReader
from elmo_scratch.static_vectors import NumberedText
from tests import FIXTURES_ROOT

NEWS = FIXTURES_ROOT / "news" / "dev.csv"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))


class PairsReader(DatasetReader):
    """Two texts a line, and one text of which there may be many."""

    def _read(self, file_path: Any) -> Iterable[Instance]:
        with open(file_path, encoding="utf-8") as file:
            for line in file:
                yield self.text_to_instance(*line.rstrip("\n").split("\t"))

    def text_to_instance(self, *texts: str) -> Instance:  # type: ignore[override]
        first, second, *others = (
            TextField([Token(word) for word in text.split(" ")]) for text in texts
        )
        return Instance({"a": first, "b": second, "rest": ListField(others)})


class LabelsReader(DatasetReader):
    """No text at all."""

    def _read(self, file_path: Any) -> Iterable[Instance]:
        yield Instance({"label": LabelField("x")})


def sentences_of(text: NumberedText) -> List[List[str]]:
    starts = text.sentence_starts.tolist()
    return [
        [text.words[token] for token in text.tokens[start:end].tolist()]
        for start, end in zip(starts, starts[1:])
    ]


def counts_of(text: NumberedText) -> dict:
    return dict(zip(text.words, text.counts.tolist()))


def test_a_corpus_is_read_as_pre_training_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("b a b\n\n  a\tc\n", encoding="utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("é a".encode()))
    text = NumberedText.of_corpus(str(tmp_path / "*.txt*"))
    assert sentences_of(text) == [["b", "a", "b"], ["a", "c"], ["é", "a"]]
    assert counts_of(text) == {"a": 3, "b": 2, "c": 1, "é": 1}


def test_errors_of_a_corpus_name_the_file_and_the_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="not_utf8.txt, line 2: expected UTF-8 text"):
        NumberedText.of_corpus(FIXTURES_ROOT / "bad" / "not_utf8.txt")
    with pytest.raises(ConfigurationError, match="none.txt: no file matches"):
        NumberedText.of_corpus(tmp_path / "none.txt")


def test_a_table_is_not_taken_for_text() -> None:
    with pytest.raises(ConfigurationError, match="dev.csv: .* that of a table.*--reader ag_news"):
        NumberedText.of_corpus(NEWS)


def test_the_tokens_of_a_reader_are_those_of_its_text_fields() -> None:
    reader = AgNewsReader(tokenizer=WhitespaceTokenizer(), use_title=True)
    text = NumberedText.of_reader(reader, NEWS)
    expected = [[token.text for token in instance["text"]] for instance in reader.read(NEWS)]
    assert sentences_of(text) == expected
    assert sum(text.counts) == sum(map(len, expected))


def test_each_text_field_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("b a b\ta\tc  d\tb\n", encoding="utf-8")
    text = NumberedText.of_reader(PairsReader(), path)
    # The reader makes an empty token between the two spaces, which is no word.
    assert sentences_of(text) == [["b", "a", "b"], ["a"], ["c", "d"], ["b"]]
    assert counts_of(text) == {"b": 3, "a": 2, "c": 1, "d": 1}


def test_a_reader_that_finds_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="none.tsv: can't be read by PairsReader"):
        NumberedText.of_reader(PairsReader(), tmp_path / "none.tsv")


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"no tab\n", "ValueError: not enough values to unpack"),
        (b"a\tb\tc\n\xff\tb\tc\n", "UnicodeDecodeError: 'utf-8' codec"),
    ],
)
def test_text_that_a_reader_does_not_expect_is_an_error(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "x.tsv").write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"x.tsv: can't be read by .*{reason}"):
        NumberedText.of_reader(PairsReader(), tmp_path / "x.tsv")


@pytest.mark.parametrize("error", [TypeError("a list"), AttributeError("no split"), csv.Error("x")])
def test_whatever_a_reader_raises_is_an_error_that_names_the_text(error: Exception) -> None:
    class FailingReader(DatasetReader):
        def _read(self, file_path: Any) -> Iterable[Instance]:
            raise error

    reason = f"can't be read by FailingReader \\({type(error).__name__}: {error}\\)"
    with pytest.raises(ConfigurationError, match=f"x.json: {reason}"):
        NumberedText.of_reader(FailingReader(), "x.json")


def test_a_reader_without_text_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="dev.csv: .* LabelsReader found no token"):
        NumberedText.of_reader(LabelsReader(), NEWS)
