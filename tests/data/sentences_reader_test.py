import gzip
from pathlib import Path
from typing import List

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.dataset_readers.dataset_reader import WorkerInfo
from allennlp.data.fields import TextField
from allennlp.data.tokenizers import CharacterTokenizer, WhitespaceTokenizer

from elmo_scratch.data import SentencesReader, SpacyBlankTokenizer
from elmo_scratch.data.corpus import PreparedCorpus
from tests import FIXTURES_ROOT


def words_of(instance: Instance) -> List[str]:
    sentence = instance["sentence"]
    assert isinstance(sentence, TextField)
    return [str(token) for token in sentence.tokens]


def test_each_line_of_a_text_file_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("The cat sat .\n It  slept\tlong .\r\nIt woke .")
    assert [words_of(instance) for instance in SentencesReader().read(path)] == [
        ["The", "cat", "sat", "."],
        ["It", "slept", "long", "."],
        ["It", "woke", "."],
    ]


def test_lines_without_a_token_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\none .\n \t\ntwo .\n\n")
    sentences = [words_of(instance) for instance in SentencesReader().read(path)]
    assert sentences == [["one", "."], ["two", "."]]


def test_sentences_are_those_of_a_prepared_corpus_whatever_the_tokenizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "text.txt"
    text = "\u3000\u3000学而 时习之\r\n\u3000\r\n不亦说乎\ra b\x85c \n\n\x1c\nd"
    path.write_bytes(text.encode("utf-8"))
    for tokenizer in (CharacterTokenizer(), SpacyBlankTokenizer("xx"), WhitespaceTokenizer()):
        corpus = PreparedCorpus.of(path, tokenizer)
        words, starts = list(corpus.words), corpus.sentence_starts.tolist()
        expected = [
            [words[number] for number in corpus.tokens[start:stop]]
            for start, stop in zip(starts, starts[1:])
        ]
        reader = SentencesReader(tokenizer=tokenizer)
        assert [words_of(instance) for instance in reader.read(path)] == expected
        assert len(expected) == 4


def test_each_description_of_an_ag_news_file_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "news.csv"
    path.write_text(
        '"3","Oil Up","Oil rose.\\Gas fell."\n"1","Only a Title",""\n"2","t","They won"\n'
    )
    reader = SentencesReader(tokenizer=SpacyBlankTokenizer())
    assert [words_of(instance) for instance in reader.read(path)] == [
        ["Oil", "rose", ".", "Gas", "fell", "."],
        ["They", "won"],
    ]


def test_titles_of_an_ag_news_file_come_first_where_they_are_wanted(tmp_path: Path) -> None:
    path = tmp_path / "news.csv"
    path.write_text('"3","Oil Up","Oil rose."\n"1","Only a Title",""\n')
    reader = SentencesReader(tokenizer=SpacyBlankTokenizer(), use_title=True)
    assert [words_of(instance) for instance in reader.read(path)] == [
        ["Oil", "Up", "Oil", "rose", "."],
        ["Only", "a", "Title"],
    ]


def test_news_and_plain_text_are_read_together(tmp_path: Path) -> None:
    news = 'Class Index,Title,Description\n"3","Oil Up","Oil rose"\n'
    (tmp_path / "news.csv").write_text(news)
    for name in ("one", "two"):
        (tmp_path / f"{name}.txt").write_text(f"text {name}\n")
    read = SentencesReader().read([tmp_path / "news.csv", tmp_path / "*.txt"])
    sentences = [" ".join(words_of(instance)) for instance in read]
    assert sentences == ["Oil rose", "text one", "text two"]


def test_a_file_that_a_list_names_twice_is_read_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.txt").write_text(f"text {name}\n")
    read = SentencesReader().read([tmp_path / "two.txt", tmp_path / "*.txt"])
    assert [" ".join(words_of(instance)) for instance in read] == ["text two", "text one"]


def test_the_kind_of_each_file_is_that_of_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('"3","Oil Up","Oil rose"\n')
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b'"3","Oil Down","Oil fell"\n'))
    (tmp_path / "c.txt").write_text("plain text\n")
    sentences = [
        " ".join(words_of(instance)) for instance in SentencesReader().read(tmp_path / "*")
    ]
    assert sentences == ["Oil rose", "Oil fell", "plain text"]


def test_the_fixtures_have_as_many_sentences_as_their_origin_says() -> None:
    reader = SentencesReader()
    assert len(list(reader.read(FIXTURES_ROOT / "text" / "sentences.txt"))) == 300
    assert len(list(reader.read(FIXTURES_ROOT / "news" / "dev.csv"))) == 80


def test_tokens_of_a_file_after_the_maximum_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("a b c d\ne f\n")
    sentences = [words_of(instance) for instance in SentencesReader(max_tokens=3).read(path)]
    assert sentences == [["a", "b", "c"], ["e", "f"]]


def test_a_sentence_that_is_split_already_is_never_shortened() -> None:
    tokens = [Token(word) for word in "abcde"]
    assert words_of(SentencesReader(max_tokens=3).text_to_instance(tokens)) == list("abcde")


def test_an_empty_file_is_an_error_that_names_it() -> None:
    message = "empty.txt: expected sentences, but no line holds a token"
    with pytest.raises(ConfigurationError, match=message):
        list(SentencesReader().read(FIXTURES_ROOT / "bad" / "empty.txt"))


def test_a_file_of_white_space_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "white.txt"
    path.write_text(" \n\t\n")
    with pytest.raises(ConfigurationError, match="white.txt: expected sentences"):
        list(SentencesReader().read(path))


def test_an_empty_file_among_others_is_an_error_unless_it_is_said_to_be_right(
    tmp_path: Path,
) -> None:
    for name, text in (("a", "one sentence\n"), ("b", " \n\n"), ("c", "another\n"), ("d", "")):
        (tmp_path / f"{name}.txt").write_text(text)
    with pytest.raises(ConfigurationError, match=r"b.txt: expected sentences.*skip_empty_shards"):
        list(SentencesReader().read(tmp_path / "*.txt"))
    instances = SentencesReader(skip_empty_shards=True).read(tmp_path / "*.txt")
    assert list(map(words_of, instances)) == [["one", "sentence"], ["another"]]
    with pytest.raises(ConfigurationError, match="b.txt: expected sentences, but no line holds"):
        list(SentencesReader(skip_empty_shards=True).read(tmp_path / "b.txt"))


def test_text_that_is_not_utf8_is_an_error_that_names_its_line() -> None:
    with pytest.raises(ConfigurationError, match="not_utf8.txt, line 2: expected UTF-8"):
        list(SentencesReader().read(FIXTURES_ROOT / "bad" / "not_utf8.txt"))


def test_a_row_with_a_missing_column_is_an_error_that_names_its_line() -> None:
    with pytest.raises(ConfigurationError, match="missing_column.csv, line 4: expected the three"):
        list(SentencesReader().read(FIXTURES_ROOT / "bad" / "missing_column.csv"))


def test_a_config_finds_it_by_name() -> None:
    config = {"type": "elmo_scratch_sentences", "tokenizer": {"type": "spacy_blank"}}
    reader = DatasetReader.from_params(Params(config))
    assert isinstance(reader, SentencesReader)
    first = next(iter(reader.read(FIXTURES_ROOT / "bad" / "missing_column.csv")))
    assert words_of(first)[-3:] == ["border", "camps", "."]


def share_of(path: Path, worker: int, num_workers: int) -> List[List[str]]:
    reader = SentencesReader()
    reader._set_worker_info(WorkerInfo(num_workers=num_workers, id=worker))
    return [words_of(instance) for instance in reader.read(path)]


def test_every_worker_reads_its_own_share_of_the_sentences() -> None:
    path = FIXTURES_ROOT / "text" / "heldout.txt"
    sentences = [words_of(instance) for instance in SentencesReader().read(path)]
    for number in range(7):
        assert share_of(path, number, 7) == sentences[number::7]


def test_a_worker_whose_share_is_empty_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "short.txt"
    path.write_text("one sentence\n")
    assert share_of(path, 0, 2) == [["one", "sentence"]]
    assert share_of(path, 1, 2) == []


def test_blank_lines_are_no_share_of_the_sentences(tmp_path: Path) -> None:
    path = tmp_path / "paragraphs.txt"
    path.write_text("a\n\nb\n \nc\n\nd\n")
    assert [share_of(path, worker, 2) for worker in (0, 1)] == [[["a"], ["c"]], [["b"], ["d"]]]


def test_blank_lines_do_not_count_among_the_most_that_are_read(tmp_path: Path) -> None:
    path = tmp_path / "paragraphs.txt"
    path.write_text("\na\n\nb\nc\n")
    sentences = [words_of(instance) for instance in SentencesReader(max_instances=2).read(path)]
    assert sentences == [["a"], ["b"]]
