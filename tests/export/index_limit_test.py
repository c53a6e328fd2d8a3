import os
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.export.plan import check_index
from elmo_scratch.export.text import InputText
from elmo_scratch.interop.layer_files.sentence_map import IndexText

LINES = ["the river", "\N{DEVANAGARI LETTER KA}\N{GRINNING FACE}\x7f", "the river", "a \\ bank"]


def size_of(text: InputText, folder: Path) -> int:
    entries = ((line, str(number)) for number, line, _ in text.sentences())
    with IndexText.of(entries, folder) as index:
        return index.size


def test_a_map_may_be_as_large_as_hdf5_allows(tmp_path: Path) -> None:
    text = InputText("text", LINES)
    size = size_of(text, tmp_path)
    check_index(text, tmp_path, size)
    with pytest.raises(ConfigurationError, match=f"text: .* {size} bytes, .* --forget-sentences"):
        check_index(text, tmp_path, size - 1)
    assert os.listdir(tmp_path) == []


def test_a_short_text_is_not_read_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = InputText("text", LINES)
    monkeypatch.setattr(InputText, "sentences", None)
    check_index(text, tmp_path)


@pytest.mark.parametrize("character", ["x", "\x01", "\x7f", "\xe9", "\u0915", "\U0001f600", '"'])
def test_the_bound_holds_for_every_character(character: str, tmp_path: Path) -> None:
    for lines in ([character * 999 + "y"], [f"{character}{number}y" for number in range(500)]):
        text = InputText("text", lines)
        size = size_of(text, tmp_path)
        with pytest.raises(ConfigurationError):
            check_index(text, tmp_path, size - 1)
