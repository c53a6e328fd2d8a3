import json
import random
from typing import Dict, Iterator, List, Optional

import pytest

from elmo_scratch.interop.layer_files import sentence_map
from elmo_scratch.interop.layer_files.sentence_map import SentenceIndex, entries_of

SENTENCES = {"one": "0", "Où est 🦩 ?": "11", 'a "quoted" \\ / word\t': "2", "": "3", "\ud800": "4"}


def pieces_of(text: bytes, size: int) -> List[bytes]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def test_sentences_are_found_at_their_places() -> None:
    index = SentenceIndex(SENTENCES.items())
    assert len(index) == 5
    for place, (sentence, key) in enumerate(SENTENCES.items()):
        assert index.find(sentence) == place
        assert index.key(place) == key


def test_other_sentences_are_not_found() -> None:
    index = SentenceIndex(SENTENCES.items())
    assert index.find("On") is None
    assert index.find("one ") is None
    assert SentenceIndex([]).find("one") is None


def test_of_many_sentences_each_is_found_and_of_equal_ones_the_last() -> None:
    entries = [(f"sentence {number % 1500}", f"key {number}") for number in range(2000)]
    index = SentenceIndex(iter(entries))
    for sentence, key in dict(entries).items():
        place = index.find(sentence)
        assert place is not None and index.key(place) == key


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize("is_ascii", [True, False])
@pytest.mark.parametrize("indent", [None, 3])
def test_json_is_read_however_it_is_cut(size: int, is_ascii: bool, indent: Optional[int]) -> None:
    entries = dict(list(SENTENCES.items())[:4])
    text = json.dumps(entries, ensure_ascii=is_ascii, indent=indent).encode()
    assert list(entries_of(pieces_of(text, size))) == list(entries.items())


def test_json_of_many_entries_is_read() -> None:
    draw = random.Random(13)
    alphabet = 'ab "\\/{}:,\n\x00é鹤🦩'
    entries: Dict[str, str] = {}
    for key in range(3000):
        entries["".join(draw.choices(alphabet, k=draw.randrange(30)))] = str(key)
    for is_ascii in (True, False):
        text = json.dumps(entries, ensure_ascii=is_ascii).encode()
        assert dict(entries_of(pieces_of(text, 1000))) == entries


@pytest.mark.parametrize("text", [b"{}", b" { \n} "])
def test_an_empty_map_has_no_entries(text: bytes) -> None:
    assert list(entries_of([text])) == []


NO_MAPS = [
    b"",
    b"{",
    b"}",
    b"[]",
    b"null",
    b'{"a": "0"',
    b'{"a": "0",}',
    b'{"a": "0"} x',
    b'{"a": "0"}}',
    b'{"a": 0}',
    b'{"a": {"b": "0"}}',
    b'{"a" "0"}',
    b'{"a": "0" "b": "1"}',
    b'{"a": "0", {"b": "1"}',
    b',"a": "0"}',
    b'{"a: "0"}',
    b'{"\\x": "0"}',
    b'{"\\": "0"}',
    b'{"\xff": "0"}',
]


def test_anything_else_is_an_error() -> None:
    for text in NO_MAPS:
        for size in (1, 100):
            with pytest.raises(ValueError):
                list(entries_of(pieces_of(text, size)))


def test_what_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_map, "INDEX_ENTRY", 2**20)
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        yield b'{"'
        while True:
            taken += 1
            yield b"x" * 2**14

    with pytest.raises(ValueError):
        list(entries_of(endless()))
    assert taken * 2**14 <= 2 * 2**20


def test_one_long_sentence_is_read_as_the_others() -> None:
    entries = {"𐌰" * 300_000: "0", "b c": "1"}
    text = json.dumps(entries).encode()
    assert dict(entries_of(pieces_of(text, 2**20))) == entries
