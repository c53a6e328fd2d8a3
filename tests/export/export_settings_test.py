from typing import Any, Dict, Tuple

import numpy
import pytest

from elmo_scratch.export import ExportSettings

LAYERS = numpy.arange(24, dtype=numpy.float32).reshape(3, 4, 2) ** 2
"""Of 4 tokens."""


@pytest.mark.parametrize(
    "settings, shape",
    [
        ({}, (3, 4, 2)),
        ({"kept": "top"}, (4, 2)),
        ({"kept": "average"}, (4, 2)),
        ({"pool": "mean"}, (3, 2)),
        ({"kept": "top", "pool": "max"}, (2,)),
    ],
)
def test_what_is_written_has_a_shape_of_its_own(
    settings: Dict[str, Any], shape: Tuple[int, ...]
) -> None:
    assert ExportSettings(**settings).of_layers(LAYERS).shape == shape


def test_each_choice_keeps_what_it_says() -> None:
    assert numpy.array_equal(ExportSettings().of_layers(LAYERS), LAYERS)
    assert numpy.array_equal(ExportSettings("top").of_layers(LAYERS), LAYERS[2])
    average = ExportSettings("average").of_layers(LAYERS)
    assert numpy.allclose(average, (LAYERS[0] + LAYERS[1] + LAYERS[2]) / 3)


def test_pooling_is_over_tokens() -> None:
    pooled = ExportSettings("top", pool="max").of_layers(LAYERS)
    assert numpy.array_equal(pooled, LAYERS[2, 3])  # the numbers grow from token to token
    mean = ExportSettings(pool="mean").of_layers(LAYERS)
    assert numpy.allclose(mean[1], LAYERS[1].sum(axis=0) / 4)


@pytest.mark.parametrize(
    "settings, expected",
    [({}, True), ({"forget_sentences": True}, False), ({"use_sentence_keys": True}, False)],
)
def test_there_is_an_index_unless_it_is_not_wanted(
    settings: Dict[str, Any], expected: bool
) -> None:
    assert ExportSettings(**settings).has_index is expected
