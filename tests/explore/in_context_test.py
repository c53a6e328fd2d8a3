from typing import List, Optional, Sequence

import numpy
import pytest

from elmo_scratch import SentenceLayers, nearest_by_layer
from elmo_scratch.explore import ContextNeighbour, LayerNeighbours, SenseSentence, read_senses
from tests import FIXTURES_ROOT

RESIDUAL = str(FIXTURES_ROOT / "elmo" / "residual")


class Written(SentenceLayers):
    """Gives each word a vector by hand: the static one of its letter, and that of its length."""

    def __init__(self) -> None:
        pass

    def __call__(self, sentences: Sequence[Sequence[str]]) -> List[numpy.ndarray]:  # type: ignore[override]
        static = [[(1.0, 0.1 * ord(word[0].lower())) for word in words] for words in sentences]
        above = [[(1.0, len(words) - 3.5) for _ in words] for words in sentences]
        return [numpy.array(both, "float32") for both in zip(static, above)]


def places(found: LayerNeighbours, layer: int) -> List[str]:
    return [" ".join([*each.sentence, str(each.position)]) for each in found.layers[layer]]


def test_neighbours_by_hand() -> None:
    among = ["a b", "B c A", "a x", "d d d"]
    found = nearest_by_layer(Written(), "c b d", "B", among=among, k=2)
    assert (found.sentence, found.position) == (["c", "b", "d"], 1)
    # Letters beside "b", each once, and not itself; then tokens of sentences of the same length.
    assert [each.word.lower() for each in found.layers[0]] == ["c", "a"]
    assert places(found, 1) == ["B c A 0", "B c A 1"]
    assert found.layers[1][0].cosine == pytest.approx(1)
    assert ContextNeighbour(["B", "c"], 1, 0.5).word == "c"


def test_the_sentence_itself_is_passed_over() -> None:
    found = nearest_by_layer(RESIDUAL, ["a", "bank"], "bank", among=["a bank", "A bank", ""], k=9)
    assert all(each.sentence == ["A", "bank"] for layer in found.layers for each in layer)
    assert [len(layer) for layer in found.layers] == [1, 2, 2]


def test_the_print_has_80_columns_and_no_control_characters() -> None:
    found = nearest_by_layer(
        RESIDUAL, "the bank " + "very " * 30, "bank", among=["a \x1b[31m bank " + "long " * 30]
    )
    lines = str(found).split("\n")
    assert lines[0].startswith("the [bank] very very") and len(lines) == 8
    assert lines[1].startswith("  layer 0  ") and lines[2].startswith("  layer 1  ")
    assert max(map(len, lines)) <= 80 and "\x1b" not in str(found)


@pytest.mark.parametrize(
    "word, among, k, message",
    [
        ("bank", None, 0, "`k` of 1 or more, but got 0"),
        ("river", None, 3, "a word of the sentence 'the bank', but got 'river'. Words stand"),
        ("bank", ["", "the bank"], 3, "expected sentences in `among`"),
    ],
)
def test_what_makes_no_sense_is_told(
    word: str, among: Optional[List[str]], k: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        nearest_by_layer(RESIDUAL, "the bank", word, among=among, k=k)


def test_the_sentences_of_senses_hold_their_word_once() -> None:
    rows = read_senses()
    assert len(rows) == 96 and isinstance(rows[0], SenseSentence)
    assert all(row.sentence.count(row.word) == 1 for row in rows)
    assert all(row.sentence[row.position] == row.word for row in rows)
    assert len({(row.word, row.sense) for row in rows}) == 12
