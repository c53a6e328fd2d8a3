import threading
from pathlib import Path
from typing import Any, Callable, List, Sequence, Set

import pytest

from elmo_scratch.data.spelling import IndexedBatch
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export import ExportSettings, InputText, OneProcess
from elmo_scratch.export.parts import PartFolder, PartWriting
from elmo_scratch.export.plan import Span, facts_of
from tests.export.conftest import LINES

NewLayers = Callable[..., SentenceLayers]


def writing_of(text: InputText, layers: SentenceLayers, folder: Path) -> PartWriting:
    """Writes batches of four sentences to parts beside `x.hdf5`."""
    settings = ExportSettings(batch_size=4)
    parts = PartFolder(folder / "x.hdf5")
    parts.path.mkdir()
    whole = Span(0, text.num_sentences)
    return PartWriting(text, whole, parts, facts_of(text, layers, settings), settings)


def test_spans_are_written_in_their_order(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    layers = new_layers()
    done: List[int] = []
    writing = writing_of(text, layers, tmp_path)
    spans = [Span(0, 4), Span(6, 9)]
    OneProcess().write(writing, spans, layers, done.append)
    assert done == [4, 3]
    assert writing.folder.parts() == spans


@pytest.mark.parametrize("is_left", [True, False])
def test_words_are_spelled_ahead_where_a_processor_is_left(
    is_left: bool,
    new_layers: NewLayers,
    text: InputText,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layers = new_layers()
    names: Set[str] = set()
    spell = layers.spell

    def noting(sentences: Sequence[Sequence[str]]) -> IndexedBatch:
        names.add(threading.current_thread().name)
        return spell(sentences)

    monkeypatch.setattr(layers, "spell", noting)
    monkeypatch.setattr(SentenceLayers, "leaves_a_processor", is_left)
    writing = writing_of(text, layers, tmp_path)
    OneProcess().write(writing, [writing.whole], layers, lambda _: None)
    assert writing.folder.parts() == [Span(0, len(LINES))]
    assert (threading.current_thread().name in names) != is_left


def test_no_thread_outlives_an_error(
    new_layers: NewLayers, text: InputText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = new_layers()
    writing = writing_of(text, layers, tmp_path)
    monkeypatch.setattr(SentenceLayers, "leaves_a_processor", True)
    before = threading.active_count()
    during: List[int] = []

    def fail(*_: Any) -> None:
        during.append(threading.active_count())
        raise ZeroDivisionError

    monkeypatch.setattr(layers, "read", fail)
    with pytest.raises(ZeroDivisionError):
        OneProcess().write(writing, [writing.whole], layers, lambda _: None)
    assert during == [before + 2]
    assert threading.active_count() == before


def test_only_one_process_follows_the_text() -> None:
    assert OneProcess.follows_the_text
