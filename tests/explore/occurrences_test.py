from pathlib import Path

import numpy
import pytest

from elmo_scratch.explore import ExportedTokens
from elmo_scratch.explore.neighbours import occurrences, plane_of, spread
from elmo_scratch.interop import LayerFile
from tests.explore.tiny_explorations import write_explored


def test_a_word_occurs_in_any_case(tmp_path: Path) -> None:
    path = write_explored(tmp_path / "layers.hdf5", ["The bank", "a BANK", "Straße STRASSE"])
    with LayerFile(path) as layers:
        found = occurrences(ExportedTokens(layers))
    assert found == {"the": [0], "bank": [1, 3], "a": [2], "strasse": [4, 5]}


def test_items_are_chosen_at_even_distances() -> None:
    assert spread("abcdefg", 4) == ["a", "c", "e", "g"]
    assert spread("abc", 4) == ["a", "b", "c"]


def test_a_square_lies_on_its_plane() -> None:
    # Seen in four dimensions, and far from the origin.
    corners = numpy.array([[5, 5], [5, 7], [7, 5], [7, 7]]) @ [[1, 1, 1, 1], [1, -1, 1, -1]]
    plane = plane_of(corners @ corners.T)
    assert plane.share == pytest.approx(1)
    assert numpy.abs(plane.points).max() > 0
    between = numpy.linalg.norm(plane.points[:, None] - plane.points, axis=2)
    expected = numpy.linalg.norm(corners[:, None] - corners, axis=2)
    assert between == pytest.approx(expected, abs=1e-6)


def test_a_plane_is_that_of_the_singular_values() -> None:
    vectors = numpy.random.default_rng(13).normal(size=(11, 7))
    plane = plane_of(vectors @ vectors.T)
    left, singular, _ = numpy.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    assert numpy.abs(plane.points) == pytest.approx(numpy.abs(left * singular)[:, :2])
    assert plane.share == pytest.approx((singular[:2] ** 2).sum() / (singular**2).sum())
    for axis in plane.points.T:
        assert axis[numpy.abs(axis).argmax()] > 0


def test_equal_vectors_lie_on_one_point() -> None:
    plane = plane_of(numpy.ones((3, 3)))
    assert plane.points.tolist() == [[0, 0]] * 3
    assert plane.share == 1
