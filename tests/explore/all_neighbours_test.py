import numpy
import pytest

from elmo_scratch.explore import neighbours as module
from elmo_scratch.explore.neighbours import neighbours_of_all, num_tiles
from elmo_scratch.explore.tokens import cosines, unit_vectors


@pytest.mark.parametrize("tile", [1, 7, 53, 100])
def test_neighbours_are_those_of_each_row_alone(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TILE", tile)
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 1000)
    vectors = numpy.random.default_rng(13).normal(size=(53, 5))
    vectors[[3, 29, 41]] = vectors[11]  # four of one vector
    units = unit_vectors(vectors)
    steps: list = []
    found, of_found = neighbours_of_all(units, 6, steps.append)
    assert sum(steps) == num_tiles(53)
    for row in range(53):
        alone = cosines(units, units[row])
        order = numpy.argsort(-alone, kind="stable")
        order = order[order != row][:6]
        assert found[row].tolist() == order.tolist()
        assert numpy.array_equal(of_found[row], alone[order])


@pytest.mark.parametrize("num_rows", [1, 2, 3])
def test_there_are_no_more_neighbours_than_other_rows(num_rows: int) -> None:
    units = unit_vectors(numpy.arange(1.0, 1 + 3 * num_rows).reshape(num_rows, 3))
    found, of_found = neighbours_of_all(units, 8, lambda _: None)
    assert found.shape == of_found.shape == (num_rows, num_rows - 1)
    for row, neighbours in enumerate(found):
        assert sorted([row, *neighbours]) == list(range(num_rows))
