import numpy

from elmo_scratch.data.streams import RandomOrder


def whole(size: int, seed: int) -> numpy.ndarray:
    return RandomOrder(size, numpy.random.SeedSequence(seed)).at(numpy.arange(size))


def test_every_number_comes_once() -> None:
    for size in (*range(19), 64, 65, 1000, 4096, 4097, 100_000):
        for seed in range(3):
            assert sorted(whole(size, seed).tolist()) == list(range(size)), (size, seed)


def test_a_part_is_the_same_as_in_the_whole() -> None:
    order = RandomOrder(1000, numpy.random.SeedSequence(7))
    assert numpy.array_equal(order.at(numpy.array([999, 3, 500])), whole(1000, 7)[[999, 3, 500]])


def test_a_seed_gives_one_order_and_another_seed_another() -> None:
    assert numpy.array_equal(whole(1000, 1), whole(1000, 1))
    assert (whole(1000, 1) != whole(1000, 2)).mean() > 0.99


def test_places_tell_nothing_about_numbers() -> None:
    size = 20_000
    numbers = numpy.stack([whole(size, seed) for seed in range(5)])
    places = numpy.arange(size)
    for order in numbers:
        # Of independent orders these correlations are of the size of 0.007.
        assert abs(numpy.corrcoef(places, order)[0, 1]) < 0.04
        assert abs(numpy.corrcoef(order[:-1], order[1:])[0, 1]) < 0.04
        # Neighbours stay neighbours about as seldom as by chance: twice, on average.
        assert (abs(numpy.diff(order)) == 1).sum() < 15
    assert abs(numpy.corrcoef(numbers[0], numbers[1])[0, 1]) < 0.04


def test_of_a_few_numbers_every_order_is_drawn_about_as_often() -> None:
    drawn = [tuple(whole(3, seed).tolist()) for seed in range(1200)]
    counts = [drawn.count(order) for order in set(drawn)]
    assert len(counts) == 6
    assert min(counts) > 100
