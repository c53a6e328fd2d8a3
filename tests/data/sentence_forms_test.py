from typing import List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.lines import text_lines
from elmo_scratch.data.sentence_forms import (
    CutSentence,
    TreebankWord,
    conllu_sentences,
    cut_sentences,
    form_by_name,
    json_sentences,
    spaced_line,
    text_sentences,
    treebank_sentences,
)
from tests import FIXTURES_ROOT

TREEBANK = FIXTURES_ROOT / "tasks" / "ud" / "dev.conllu"


def test_a_treebank_has_its_words_without_ranges_empty_nodes_and_comments() -> None:
    lines = [
        "# text = I don't",
        "1\tI\t_\t_\t_\t_\t_\t_\t_\t_",
        "2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_",
        "2\tdo\t_\t_\t_\t_\t_\t_\t_\t_",
        "3\tn't\t_\t_\t_\t_\t_\t_\t_\t_",
        "3.1\tpay\t_\t_\t_\t_\t_\t_\t_\t_",
        "4\t10 000\t_\t_\t_\t_\t_\t_\t_\t_",
        "",
        "# only a comment",
        "",
        "1\tYes\t_\t_\t_\t_\t_\t_\t_\t_",
    ]
    assert list(conllu_sentences(lines, "a.conllu")) == [
        CutSentence(2, "I do n't 10▁000", ["I", "do", "n't", "10 000"]),
        CutSentence(11, "Yes", ["Yes"]),
    ]


def test_a_treebank_of_the_fixtures_is_read() -> None:
    found = list(treebank_sentences(text_lines(TREEBANK), "dev"))
    assert len(found) == 5 and all(isinstance(word, TreebankWord) for word in found[0])


def test_json_lines_have_tokens_with_spaces() -> None:
    lines = ['{"id": 7, "tokens": ["New York", "sleeps"]}\n', "\n", '{"tokens": ["a\\u3000b"]}']
    assert list(json_sentences(lines, "a.jsonl")) == [
        CutSentence(1, "New▁York sleeps", ["New York", "sleeps"]),
        CutSentence(2, "", []),
        CutSentence(3, "a▁b", ["a\u3000b"]),
    ]


def test_rules_of_a_language_cut_the_lines_of_a_text() -> None:
    lines = ["  I don't know.\n", " \u3000\n", "Rock\u00a0n roll"]
    assert list(cut_sentences(lines, "a.txt", "text", "en")) == [
        CutSentence(1, "I do n't know .", ["I", "do", "n't", "know", "."]),
        CutSentence(2, "", []),
        CutSentence(3, "Rock n roll", ["Rock", "n", "roll"]),
    ]


def test_sentences_are_cut_once_and_by_rules_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match="^a.jsonl: .* already. Leave --tokenize out"):
        list(cut_sentences(['{"tokens": ["a"]}'], "a.jsonl", "jsonl", "en"))
    with pytest.raises(ConfigurationError, match="the language 'qqq'"):
        list(cut_sentences(["a"], "a.txt", "text", "qqq"))


@pytest.mark.parametrize(
    "line",
    [
        *('{"tokens": ["a"]', '["a"]', '"a"', "7", "{}", '{"tokens": "a"}', '{"tokens": []}'),
        *('{"tokens": ["a", 3]}', '{"tokens": ["a", ""]}', '{"tokens": null}', "[" * 10**5),
    ],
)
def test_a_line_without_tokens_is_named(line: str) -> None:
    lines = ['{"tokens": ["a"]}', line]
    with pytest.raises(
        ConfigurationError, match='a.jsonl, line 2: expected .*{"tokens": .*but got'
    ):
        list(json_sentences(lines, "a.jsonl"))


def test_text_is_cut_at_white_space() -> None:
    found = list(text_sentences([" the  river\n", "\n"], "a.txt"))
    assert found == [CutSentence(1, "the  river", ["the", "river"]), CutSentence(2, "", [])]


@pytest.mark.parametrize("tokens", [["a", "b c"], ["\t"], ["x\x1cy", "z"], ["a\r\nb"]])
def test_a_line_of_tokens_has_as_many_words_as_tokens(tokens: List[str]) -> None:
    assert len(spaced_line(tokens).split()) == len(tokens)


@pytest.mark.parametrize(
    "name, form",
    [
        *(("a.conllu", "conllu"), ("a.jsonl", "jsonl"), ("x/a.jsonl.gz", "jsonl")),
        *(("a.conllu.zst", "conllu"), ("a.txt", "text"), ("conllu", "text"), ("-", "text")),
        *(("a.text", "text"), ("a.gz", "text"), ("a.jsonl.txt", "text")),
    ],
)
def test_the_ending_of_a_name_tells_the_form(name: str, form: str) -> None:
    assert form_by_name(name) == form
