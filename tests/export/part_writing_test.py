import os
from pathlib import Path
from typing import Any, Callable, List
from weakref import ReferenceType, ref

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export import ExportSettings, InputText, OneProcess
from elmo_scratch.export import export as layer_export
from elmo_scratch.export.parts import LEFTOVERS, PartFolder, PartWriting
from elmo_scratch.export.pipeline import DEPTH, consume_behind
from elmo_scratch.export.plan import Span, facts_of
from elmo_scratch.interop import LayerFileWriter
from tests.export.conftest import LINES, assert_same, data_sets

NewLayers = Callable[..., SentenceLayers]
WHOLE = Span(0, len(LINES))


def write(
    writing: PartWriting,
    span: Span,
    layers: SentenceLayers,
    done: Callable[[int], None],
    seconds_a_part: float,
) -> None:
    """Writes the parts of a span, in this process."""
    OneProcess(seconds_a_part).write(writing, [span], layers, done)


@pytest.fixture
def new_writing(new_layers: NewLayers, text: InputText, tmp_path: Path) -> Callable[..., Any]:
    """Writes into a folder of its own."""

    def new(name: str, **settings: Any) -> PartWriting:
        folder = PartFolder(tmp_path / name)
        folder.path.mkdir()
        own = ExportSettings(**settings)
        return PartWriting(text, WHOLE, folder, facts_of(text, new_layers(), own), own)

    return new


def test_a_part_that_is_the_whole_becomes_the_output(
    new_writing: Callable[..., PartWriting], new_layers: NewLayers, tmp_path: Path
) -> None:
    writing = new_writing("x")
    done: List[int] = []
    write(writing, WHOLE, new_layers(), done.append, 1e9)
    assert sum(done) == len(LINES)
    (part,) = writing.folder.path.glob("0*.hdf5")
    number = part.stat().st_ino
    writing.join(tmp_path / "x")
    assert (tmp_path / "x").stat().st_ino == number
    assert len(data_sets(tmp_path / "x")) == len(LINES) + 2


@pytest.mark.parametrize("settings", [{}, {"forget_sentences": True}, {"compression": "gzip"}])
def test_parts_in_any_order_become_the_same_output(
    settings: Any,
    new_writing: Callable[..., PartWriting],
    new_layers: NewLayers,
    tmp_path: Path,
) -> None:
    whole, parts = new_writing("whole", **settings), new_writing("parts", **settings)
    write(whole, WHOLE, new_layers(), lambda _: None, 1e9)
    # Two of them by a worker that went on beside another run.
    for span in (Span(20, 50), Span(0, 7), Span(7, 20), Span(0, 5), Span(5, 12)):
        write(parts, span, new_layers(), lambda _: None, 1e9)
    assert parts.folder.missing(WHOLE) == []
    whole.join(tmp_path / "whole")
    parts.join(tmp_path / "parts")
    assert_same(data_sets(tmp_path / "whole"), data_sets(tmp_path / "parts"))


@pytest.mark.parametrize("is_left, depth", [(True, DEPTH), (False, 0)])
def test_writing_takes_turns_where_no_processor_is_left(
    is_left: bool,
    depth: int,
    new_writing: Callable[..., PartWriting],
    new_layers: NewLayers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    depths: List[int] = []

    def noting(steps: Any, make: Any, consume: Any, depth: int) -> None:
        depths.append(depth)
        consume_behind(steps, make, consume, depth)

    monkeypatch.setattr(layer_export, "consume_behind", noting)
    usual, other = new_writing("usual"), new_writing("other")
    write(usual, WHOLE, new_layers("carry"), lambda _: None, 1e9)
    depths.clear()
    monkeypatch.setattr(SentenceLayers, "leaves_a_processor", is_left)
    # In parts that take no time, each from the state that the one before has left.
    write(other, WHOLE, new_layers("carry"), lambda _: None, 0.0)
    assert depths == [depth]
    usual.join(tmp_path / "x")
    other.join(tmp_path / "y")
    assert_same(data_sets(tmp_path / "x"), data_sets(tmp_path / "y"))


def test_layers_that_are_written_take_no_memory_any_more(
    new_writing: Callable[..., PartWriting], new_layers: NewLayers, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = new_layers("carry")
    read = layers.read
    made: List["ReferenceType[torch.Tensor]"] = []
    held: List[int] = []

    def noting(*arguments: Any) -> torch.Tensor:
        held.append(sum(reference() is not None for reference in made))
        output = read(*arguments)
        made.append(ref(output))
        return output

    monkeypatch.setattr(layers, "read", noting)
    monkeypatch.setattr(SentenceLayers, "leaves_a_processor", False)
    write(new_writing("x", batch_size=10), WHOLE, layers, lambda _: None, 1e9)
    assert held == [0, 0, 0, 0, 0]


def test_what_is_joined_lies_among_the_parts_until_it_is_whole(
    new_writing: Callable[..., PartWriting],
    new_layers: NewLayers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writing = new_writing("x")
    for span in (Span(0, 7), Span(7, 50)):
        write(writing, span, new_layers(), lambda _: None, 1e9)
    seen: List[List[str]] = []
    original = LayerFileWriter.copy_from

    def listing(self: LayerFileWriter, path: Path) -> None:
        seen.append(os.listdir(tmp_path))
        assert any(LEFTOVERS.fullmatch(name) for name in os.listdir(writing.folder.path))
        original(self, path)

    monkeypatch.setattr(LayerFileWriter, "copy_from", listing)
    writing.join(tmp_path / "x")
    assert seen == [["x.parts"], ["x.parts"]]
    assert writing.folder.parts() == [Span(0, 7), Span(7, 50)]


def test_nothing_unfinished_stays_after_an_error(
    new_writing: Callable[..., PartWriting], new_layers: NewLayers, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = new_writing("x", batch_size=4)
    layers = new_layers()
    monkeypatch.setattr(layers, "read", None)
    with pytest.raises(TypeError):
        write(writing, WHOLE, layers, lambda _: None, 1e9)
    assert os.listdir(writing.folder.path) == []


def test_errors_name_the_output_and_not_a_part(
    new_writing: Callable[..., PartWriting],
    new_layers: NewLayers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layers = new_layers()
    read = layers.read
    monkeypatch.setattr(layers, "read", lambda *arguments: 1e9 * read(*arguments))
    with pytest.raises(ConfigurationError, match=f"^{tmp_path}/x: the vectors of '[0-9]+' have"):
        write(new_writing("x", dtype="float16"), WHOLE, layers, lambda _: None, 1e9)
