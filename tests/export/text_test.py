import os
import pickle
from pathlib import Path
from typing import Any, Iterator, List, Optional

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.export import text as input_text
from elmo_scratch.export.text import LONGEST_OF_SAMPLE, InputText, Sentence


def test_sentences_are_stripped_and_split_at_any_white_space(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\ufeff  the river\tbank \r\na\u00a0b\u2003c\nd", encoding="utf-8")
    text = InputText("text", path)
    assert (text.num_sentences, text.num_tokens) == (3, 7)
    assert list(text.sentences()) == [
        Sentence(0, "the river\tbank", ["the", "river", "bank"]),
        Sentence(1, "a\u00a0b\u2003c", ["a", "b", "c"]),
        Sentence(2, "d", ["d"]),
    ]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_lines_end_as_in_any_file(ends: str, last: bool, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    lines = ["the river", "bank", "rose"]
    path.write_bytes((ends.join(lines) + (ends if last else "")).encode())
    text = InputText("text", path)
    assert [line for _, line, _ in text.sentences()] == lines
    with path.open() as opened:
        assert InputText("text", list(opened)).digest == text.digest


def test_blank_lines_between_carriage_returns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"a\r\rb\nc\r \r")
    with pytest.raises(ConfigurationError, match="text, lines 2, 5: expected a sentence"):
        InputText("text", path)


def test_a_span_keeps_the_numbers_of_the_whole() -> None:
    text = InputText("text", ["a", "b", "c", "d"])
    assert [(number, line) for number, line, _ in text.sentences(1, 3)] == [(1, "b"), (2, "c")]
    assert list(text.sentences(4)) == []


def test_spans_that_follow_each_other_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"line {number}\n" for number in range(40)))
    text = InputText("text", path)
    num_read = 0
    read_lines = input_text.text_lines

    def counted(*args: Any, **kwargs: Any) -> Iterator[str]:
        nonlocal num_read
        for line in read_lines(*args, **kwargs):
            num_read += 1
            yield line

    def numbers(start: int, stop: Optional[int]) -> List[int]:
        found = list(text.sentences(start, stop))
        assert [line for _, line, _ in found] == [f"line {number}" for number, _, _ in found]
        return [number for number, _, _ in found]

    monkeypatch.setattr(input_text, "text_lines", counted)
    assert numbers(2, 10) == list(range(2, 10))
    assert numbers(10, 13) == list(range(10, 13))
    assert numbers(20, 30) == list(range(20, 30))
    assert num_read == 30
    # Back, in another process, and to the end.
    assert numbers(1, 4) == [1, 2, 3]
    assert [number for number, _, _ in pickle.loads(pickle.dumps(text)).sentences(5, 7)] == [5, 6]
    assert num_read == 30 + 4 + 7
    assert numbers(38, None) == [38, 39]
    assert numbers(39, 50) == [39]
    assert numbers(60, 70) == []


def test_the_digest_is_that_of_the_stripped_lines() -> None:
    assert InputText("a", ["x y ", "z"]).digest == InputText("b", [" x y\n", "z\n"]).digest
    assert InputText("a", ["x", "y"]).digest != InputText("a", ["y", "x"]).digest
    assert InputText("a", ["x y"]).digest != InputText("a", ["x", "y"]).digest


def test_blank_lines_are_named() -> None:
    with pytest.raises(ConfigurationError, match="text, lines 2, 4: expected a sentence"):
        InputText("text", ["a", " ", "b", "\u2003"])


def test_of_many_blank_lines_some_are_named() -> None:
    with pytest.raises(ConfigurationError, match="lines 1, 2, .*, 20 and 30 more: expected"):
        InputText("text", [""] * 50)


def test_a_sentence_that_comes_twice_is_no_key() -> None:
    with pytest.raises(ConfigurationError, match="text, lines 1, 2, 3, 5: expected no sentence"):
        InputText("text", ["a b", "c", "a b ", "d", "c"]).check_keys()


def test_sentences_that_differ_are_keys() -> None:
    InputText("text", ["a b", "a  b", "A b"]).check_keys()


@pytest.mark.parametrize(
    "line, described",
    [("and / or", "a slash"), ("a\0b", "a NUL"), (".", "'.'"), ("sentence_to_index", "keep for")],
)
def test_what_no_data_set_can_be_called_is_no_key(line: str, described: str) -> None:
    text = InputText("text", ["a", line])
    with pytest.raises(ConfigurationError, match=f"text, line 2: .*{described}"):
        text.check_keys()


def test_a_sample_does_not_depend_on_the_order_of_the_lines() -> None:
    lines = [f"{number} a b" for number in range(50)]
    sample = [line for _, line, _ in InputText("text", lines).sample(7)]
    assert len(set(sample)) == 7
    assert [line for _, line, _ in InputText("text", lines[::-1]).sample(7)] == sample
    assert len(InputText("text", lines[:3]).sample(7)) == 3


def test_a_sample_has_long_sentences_only_if_there_are_no_others() -> None:
    long = " ".join(["w"] * (LONGEST_OF_SAMPLE + 1))
    text = InputText("text", [long, "a", f"{long} w", "b"])
    assert [line for _, line, _ in text.sample(3)][2] in (long, f"{long} w")
    assert {line for _, line, _ in text.sample(2)} == {"a", "b"}


def test_a_text_that_has_changed_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("a b\nc\n")
    text = InputText("text", path)
    text.check_unchanged()
    path.write_text("a b\nd\n")
    os.utime(path, (0, 0))  # Clocks may tick slowly.
    with pytest.raises(ConfigurationError, match="text: the text has changed since"):
        text.check_unchanged()


def test_a_relative_path_holds_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.txt").write_text("a b\n")
    monkeypatch.chdir(tmp_path)
    text = InputText("text", Path("text.txt"))
    monkeypatch.chdir("/")
    assert [line for _, line, _ in text.sentences()] == ["a b"]


def test_a_home_folder_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "text.txt").write_text("one sentence\n")
    assert InputText("~/text.txt", Path("~/text.txt")).num_sentences == 1


def test_sentences_of_a_treebank_are_numbered_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "text.conllu"
    rows = ["{}\t{}" + "\t_" * 8 for _ in range(3)]
    words = [("1", "Hà Nội"), ("2", "ngủ")], [("1", ".")], [("1", "ngủ")]
    blocks = ["# a\n" + "\n".join(rows[0].format(*word) for word in block) for block in words]
    path.write_text("\n\n".join(blocks), encoding="utf-8")
    text = InputText("text", path)
    assert list(text.sentences()) == [
        Sentence(0, "Hà▁Nội ngủ", ["Hà Nội", "ngủ"]),
        Sentence(1, ".", ["."]),
        Sentence(2, "ngủ", ["ngủ"]),
    ]
    assert InputText("text", path, most=1).num_tokens == 2
    with pytest.raises(ConfigurationError, match="text, sentence 2: .*'.'"):
        text.check_keys()


@pytest.mark.parametrize("name", ["text.conllu", "text.jsonl"])
def test_a_byte_order_mark_is_no_part_of_the_first_sentence(name: str, tmp_path: Path) -> None:
    written = {
        "text.conllu": "1\tThe" + "\t_" * 8 + "\n\n",
        "text.jsonl": '{"tokens": ["The"]}\n',
    }
    path = tmp_path / name
    path.write_text(f"\ufeff{written[name]}", encoding="utf-8")
    assert list(InputText("text", path).sentences()) == [Sentence(0, "The", ["The"])]


def test_a_text_is_cut_by_the_rules_of_its_language() -> None:
    text = InputText("text", ["I don't."], language="en")
    assert list(text.sentences()) == [Sentence(0, "I do n't .", ["I", "do", "n't", "."])]
    assert text.digest != InputText("text", ["I don't."]).digest
    assert text.digest != InputText("text", ["I don't."], language="fr").digest
    text.check_unchanged()


def test_tokens_that_look_alike_in_a_line_are_another_text() -> None:
    lines = ['{"tokens": ["a b"]}'], ['{"tokens": ["a\u2581b"]}'], ['{"tokens": ["a", "b"]}']
    assert len({InputText("text", line, "jsonl").digest for line in lines}) == 3


def test_blank_json_lines_and_halves_of_surrogate_pairs_are_named() -> None:
    with pytest.raises(ConfigurationError, match="text, line 2: expected a sentence, .* blank"):
        InputText("text", ['{"tokens": ["a"]}', " "], "jsonl")
    with pytest.raises(ConfigurationError, match="text, line 1: .* half of a surrogate pair"):
        InputText("text", ['{"tokens": ["\\ud800"]}'], "jsonl")
