from pathlib import Path
from typing import List

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.explore import ExportedTokens, nearest, word_lines
from elmo_scratch.explore.in_context import COLUMNS
from elmo_scratch.interop import LayerFile
from elmo_scratch.terminal import text_width
from tests.explore.tiny_explorations import SENTENCES, write_explored
from tests.interop.layer_files.tiny_layers import FACTS


def lines_of(path: Path, word: str, k: int = 2) -> List[str]:
    with LayerFile(path) as layers:
        return word_lines(ExportedTokens(layers), word, k)


def test_a_word_is_shown_in_its_contexts(tmp_path: Path) -> None:
    path = write_explored(tmp_path / "layers.hdf5", SENTENCES[:2])
    assert "\n".join(lines_of(path, "BANK")) == GOLDEN


GOLDEN = """\
BANK: 2 occurrences in 2 sentences of layers.hdf5

[1]         0                 They sat on the [bank] of the river .
 layer 2
  0.729     0                                 [They] sat on the bank of the rive
  0.637     0         They sat on the bank of [the] river .
 layer 1
  0.881     1                                 [The] bank raised its rates .
  0.721     1                             The [bank] raised its rates .
 static layer 0
  the 0.939, rates 0.620

[2]         1                             The [bank] raised its rates .
 layer 2
  0.806     0                     They sat on [the] bank of the river .
  0.486     0                 They sat on the [bank] of the river .
 layer 1
  0.887     0  y sat on the bank of the river [.]
  0.721     0                 They sat on the [bank] of the river .
 static layer 0
  the 0.939, rates 0.620

cosines between these occurrences
 layer 2       [1]
  [2]        0.486
 layer 1       [1]
  [2]        0.721"""


def test_lines_tell_the_nearest(tmp_path: Path) -> None:
    path = write_explored(tmp_path / "layers.hdf5")
    lines = lines_of(path, "bat", k=3)
    upper = lines.index(" layer 2")
    for found, line in zip(nearest(path, 2, 1, 2, k=3), lines[upper + 1 :]):
        assert line.split()[:2] == [f"{found.cosine:.3f}", str(found.sentence)]
        assert f"[{found.word}" in line
    static = lines.index(" static layer 0")
    words = nearest(path, 2, 1, 0, k=3, each_word_once=True)
    expected = ", ".join(f"{found.word} {found.cosine:.3f}" for found in words)
    assert " ".join(lines[static + 1 :]).split() == expected.split()


def test_some_of_many_occurrences_are_shown(tmp_path: Path) -> None:
    path = write_explored(tmp_path / "layers.hdf5", [f"bank {n} :" for n in range(9)])
    lines = lines_of(path, "bank", k=1)
    assert lines[0] == "bank: 9 occurrences, 5 of them shown, in 9 sentences of layers.hdf5"
    shown = [line.split()[1] for line in lines if line.startswith("[")]
    assert shown == ["0", "2", "4", "6", "8"]
    assert len([line for line in lines if line.startswith("  [")]) == 2 * 4


def test_lines_have_80_columns_and_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    long = "word " * 40 + "bank\x1b[2J" + " 銀行" * 40
    path = write_explored(tmp_path / "a\x07b.hdf5", [long, "x" * 200 + " bank " + "é" * 100])
    lines = [*lines_of(path, "bank"), *lines_of(path, "bank\x1b[2J")]
    assert max(map(text_width, lines)) == COLUMNS
    assert all(line.isprintable() for line in lines)
    (line,) = (line for line in lines if line.startswith("[1]") and "銀" in line)
    assert "word word [bank\ufffd[2J] 銀行" in line


def test_a_file_of_one_layer_has_one_section(tmp_path: Path) -> None:
    path = write_explored(tmp_path / "top.hdf5", facts=FACTS._replace(kept="top"))
    lines = lines_of(path, "bat")
    assert [line for line in lines if line.startswith(" ") and line[1] != " "] == [" top layer"]


def test_a_word_that_does_not_occur_is_an_error_with_a_hint(tmp_path: Path) -> None:
    path = write_explored(tmp_path / "layers.hdf5")
    with pytest.raises(ConfigurationError, match="'bnk' is none. Did you mean bank"):
        lines_of(path, "bnk")
    with pytest.raises(ConfigurationError, match="layers.hdf5: expected a word.*'zzz' is none.$"):
        lines_of(path, "zzz")
