import json
import math

import pytest

from elmo_scratch.scoring import LikelyWord, SentenceScore, TextScore, json_lines, table_lines
from elmo_scratch.scoring.scores import COLUMNS, json_total, score_from_json, table_total
from elmo_scratch.terminal import text_width

HALF = math.log(0.5)

SCORE = SentenceScore(
    number=7,
    words=["the", "bank\x1b[2J", "銀行" * 20],
    unknown=[1],
    left_to_right=[HALF, 2 * HALF, 3 * HALF, -1e-9],
    right_to_left=[HALF, HALF, HALF, HALF],
    likely=[[LikelyWord("a", 0.75), LikelyWord("the", 0.125)], [], [LikelyWord("x" * 30, 0.5)] * 9],
)


def test_a_line_of_json_has_all_of_a_sentence() -> None:
    (line,) = json_lines(SCORE)
    record = json.loads(line)
    assert record["perplexity_left_to_right"] == pytest.approx(2**1.5)
    assert record["perplexity"] == pytest.approx(2**1.25)
    fields = {name: record[name] for name in SentenceScore._fields}
    assert score_from_json(fields) == SCORE
    assert "likely" not in json.loads(json_lines(SCORE._replace(likely=[]))[0])


def test_a_text_is_the_mean_over_all_that_was_predicted() -> None:
    total = TextScore()
    total.add(SCORE)
    total.add(SentenceScore(8, ["a"], [], [0.0, 0.0], [HALF, HALF], []))
    (line,) = json_total(total)
    text = json.loads(line)["text"]
    assert (text["sentences"], text["words"], text["unknown"]) == (2, 4, 1)
    assert text["perplexity_left_to_right"] == pytest.approx(2 ** (6 / 6))
    assert text["perplexity_right_to_left"] == pytest.approx(2)
    assert table_total(total) == [
        "2 sentences, 4 words",
        "1 word (25.0%) out of vocabulary (?)",
        "perplexity 2.0",
        "  left to right 2.0, right to left 2.0",
    ]


def test_a_table_has_80_columns_and_nothing_that_a_terminal_obeys() -> None:
    lines = table_lines(SCORE)
    assert lines[:4] == [
        "sentence 7  perplexity 2.4: left to right 2.8, right to left 2.0",
        "                          left to right  right to left",
        "  <S>                                            -0.69",
        "  the                             -0.69          -0.69",
    ]
    assert lines[4] == "      a 75.0%  the 12.5%"
    assert lines[5] == "? bank\ufffd[2J                        -1.39          -0.69"
    assert lines[6].startswith("  銀行銀行銀行") and text_width(lines[6]) == 54
    assert lines[-2:] == ["  </S>                             0.00", ""]
    assert max(map(text_width, lines)) <= COLUMNS
    assert all(line.isprintable() for line in lines)
    # A word and its share stay on one line.
    shares = lines[7:-2]
    assert [line.count("50.0%") for line in shares] == [line.count("x" * 30) for line in shares]
