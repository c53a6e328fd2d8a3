from typing import Callable, Dict, Iterator

import numpy
import pytest

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export import ExportSettings, InputText
from elmo_scratch.export import pipeline as embedded_batches_module
from elmo_scratch.export.pipeline import EmbeddedBatch, StepEmbedder, spelled_steps
from elmo_scratch.export.plan import Span
from tests.export.conftest import LINES

NewLayers = Callable[..., SentenceLayers]


def embedded_batches(
    text: InputText,
    span: Span,
    layers: SentenceLayers,
    settings: ExportSettings,
    *,
    seconds_a_part: float,
) -> Iterator[EmbeddedBatch]:
    """Every step of the span, embedded."""
    steps = spelled_steps(text, span, layers, settings)
    return map(StepEmbedder(span, layers, seconds_a_part), steps)


def test_each_sentence_of_the_span_comes_with_its_layers(
    new_layers: NewLayers, text: InputText
) -> None:
    found = {}
    settings = ExportSettings(batch_size=4)
    for sentences, layers, _ in embedded_batches(
        text, Span(5, 30), new_layers(), settings, seconds_a_part=1e9
    ):
        for row, sentence in enumerate(sentences):
            found[sentence.number] = layers[:, row, : len(sentence.tokens)].numpy()
    assert sorted(found) == list(range(5, 30))
    alone = new_layers()
    for number, vectors in found.items():
        assert numpy.array_equal(vectors, alone([LINES[number].split()])[0])


@pytest.mark.parametrize("seconds, num_ends", [(0, 3), (1e9, 1)])
def test_parts_end_when_it_is_time_and_at_the_end(
    seconds: float, num_ends: int, new_layers: NewLayers, text: InputText
) -> None:
    settings = ExportSettings(batch_size=4)
    batches = embedded_batches(
        text, Span(0, 10), new_layers("carry"), settings, seconds_a_part=seconds
    )
    ends = [batch.end for batch in batches if batch.end is not None]
    assert [end.stop for end in ends][-1] == 10
    assert len(ends) == num_ends


def test_parts_end_when_they_are_full(
    new_layers: NewLayers, text: InputText, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_batches_module, "SENTENCES_A_PART", 6)
    batches = embedded_batches(
        text, Span(3, 23), new_layers("carry"), ExportSettings(batch_size=4), seconds_a_part=1e9
    )
    assert [batch.end.stop for batch in batches if batch.end is not None] == [11, 19, 23]


def test_the_state_at_the_end_is_the_one_to_go_on_from(
    new_layers: NewLayers, text: InputText
) -> None:
    settings = ExportSettings(batch_size=4)
    first = embedded_batches(text, Span(0, 8), new_layers("carry"), settings, seconds_a_part=1e9)
    (end,) = [batch.end for batch in first if batch.end is not None]
    expected = new_layers("carry")
    for start in (0, 4):
        expected([line.split() for line in LINES[start : start + 4]])
    assert end.state is not None
    for name, part in (expected.carried() or {}).items():
        assert numpy.array_equal(end.state[name], part)


def test_without_carried_states_there_is_none(new_layers: NewLayers, text: InputText) -> None:
    for batch in embedded_batches(
        text, Span(0, 8), new_layers(), ExportSettings(), seconds_a_part=0
    ):
        assert batch.end is None or batch.end.state is None


@pytest.mark.parametrize("state", ["carry", "reset"])
def test_a_long_sentence_is_not_laid_beside_others(
    state: str, new_layers: NewLayers, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [*LINES[:5], "a long sentence " * 50, *LINES[5:20]]
    settings = ExportSettings(batch_size=8)

    def found() -> Dict[int, numpy.ndarray]:
        batches = embedded_batches(
            InputText("text", lines), Span(0, 21), new_layers(state), settings, seconds_a_part=1e9
        )
        vectors, laid = {}, []
        for sentences, layers, _ in batches:
            laid.append(layers.size(1) * layers.size(2))
            for row, sentence in enumerate(sentences):
                vectors[sentence.number] = layers[:, row, : len(sentence.tokens)].numpy()
        vectors[-1] = numpy.array(max(laid))
        return vectors

    whole = found()
    monkeypatch.setattr("elmo_scratch.data.spelling.MAX_POSITIONS_LAID", 100)
    in_groups = found()
    assert (whole.pop(-1), in_groups.pop(-1)) == (8 * 150, 150)
    assert sorted(in_groups) == list(range(21))
    for number, vectors in whole.items():
        assert numpy.array_equal(vectors, in_groups[number])
