import gzip
from pathlib import Path
from typing import List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.own_text import TextSize, check_size, hold_out, measure


def written(path: Path, lines: List[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_text_is_measured(tmp_path: Path) -> None:
    one = written(tmp_path / "one.txt", ["a b c", "", "d e."])
    two = tmp_path / "two.txt.gz"
    two.write_bytes(gzip.compress(b"f g .\nh, i\n"))
    assert measure([one, two]) == TextSize([2, 2], 10, 0.2)


@pytest.mark.parametrize(
    "line, is_raw",
    [
        ("Mr. Smith " + "said that it was closed " * 7 + ".", False),
        ("He said, that it was closed.", True),
        ("नमस्ते दुनिया।", True),
    ],
)
def test_marks_at_words_show_a_text_that_is_not_cut(
    line: str, is_raw: bool, tmp_path: Path
) -> None:
    assert measure([written(tmp_path / "text.txt", [line] * 3)]).is_raw == is_raw


@pytest.mark.parametrize(
    "size, reason",
    [
        (TextSize([100], 1999, 0.0), "x.txt: expected a text of at least 2,000 words, got 1,999"),
        (TextSize([9, 10], 5000, 0.0), "expected one sentence a line, .* 5,000 words in 19 lines"),
    ],
)
def test_a_text_can_be_too_small(size: TextSize, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        check_size(size, "x.txt")
    check_size(TextSize([20], 2000, 0.0), "x.txt")


def test_the_end_of_each_file_is_held_out(tmp_path: Path) -> None:
    files = [
        written(tmp_path / f"{name}.txt", [f"{name} {number}" for number in range(length)])
        for name, length in (("a", 40), ("b", 100), ("c", 3))
    ]
    train, dev = tmp_path / "train.txt", tmp_path / "dev.txt"
    hold_out(files, measure(files), train, dev)
    held = ["a 38", "a 39", *(f"b {number}" for number in range(95, 100)), "c 2"]
    assert dev.read_text().splitlines() == held
    kept = [line for file in files for line in file.read_text().splitlines() if line not in held]
    assert train.read_text().splitlines() == kept


def test_of_a_large_text_a_smaller_share_is_held_out() -> None:
    assert TextSize([300_000, 100_000], 8_000_000, 0.0).held_share == 0.05
    assert TextSize([3_000_000, 1_000_000], 80_000_000, 0.0).held_share == 0.005


def test_a_text_that_grows_meanwhile_is_an_error(tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt", ["a b"] * 30)
    size = measure([file])
    written(file, ["a b"] * 31)
    with pytest.raises(ConfigurationError, match="a.txt: expected 30 sentences, .* got 31"):
        hold_out([file], size, tmp_path / "train.txt", tmp_path / "dev.txt")
