import numpy

from elmo_scratch.alphabet import character_ids
from elmo_scratch.data.streams import BEGIN, END, NUM_MARKS, Spelling

WORDS = ["a", "Straße", "<S>", "日本語", "x" * 49, "</S>", "é" * 30, "<s>", "ordinary"]


def spelling(max_characters: int = 50) -> Spelling:
    encoded = [word.encode() for word in WORDS]
    return Spelling(
        numpy.frombuffer(b"".join(encoded), dtype=numpy.uint8),
        numpy.cumsum([0, *map(len, encoded)]),
        max_characters,
        (numpy.array([WORDS.index("<S>")]), numpy.array([WORDS.index("</S>")])),
    )


def test_words_are_spelled_as_the_alphabet_says() -> None:
    numbers = numpy.arange(len(WORDS)) + NUM_MARKS
    for max_characters in (3, 10, 50, 60):
        expected = [character_ids(word, max_characters) for word in WORDS]
        assert spelling(max_characters).of(numbers).tolist() == expected


def test_marks_are_spelled_by_their_own_ids() -> None:
    ids = spelling().of(numpy.array([END, NUM_MARKS, BEGIN]))
    assert ids.tolist() == [character_ids(word) for word in ("</S>", "a", "<S>")]


def test_no_words_are_no_rows() -> None:
    assert spelling().of(numpy.array([], dtype=numpy.int64)).shape == (0, 50)
