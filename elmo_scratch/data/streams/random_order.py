"""A random order of any length that takes no memory."""

import numpy

NUM_ROUNDS = 6
"""Four are enough where both halves are large (Luby and Rackoff 1988); shards may be small."""


class RandomOrder:
    """
    A random order of the numbers below `size`, of which each part is computed where it is wanted: a
    Feistel network over the next larger power of four, gone through again where it leads out of
    the numbers.

    # Parameters

    size : `int`
        How many numbers.
    seed : `numpy.random.SeedSequence`
        Draws the order.

    # Source

    Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains": the cycle-walking cipher.
    """

    def __init__(self, size: int, seed: numpy.random.SeedSequence) -> None:
        self._size = size
        self._half = numpy.uint64(max(1, -(-max(0, size - 1).bit_length() // 2)))  # in bits
        self._mask = (numpy.uint64(1) << self._half) - numpy.uint64(1)
        self._keys = seed.generate_state(NUM_ROUNDS, numpy.uint64)

    def at(self, places: numpy.ndarray) -> numpy.ndarray:
        """
        # Parameters

        places : `numpy.ndarray`
            Shape `(places,)`: places in the order, from 0 on, below `size`.

        # Returns

        `numpy.ndarray`
            Shape `(places,)`, of int64: the numbers that stand there.
        """
        numbers = self._through(places.astype(numpy.uint64))
        outside = numpy.flatnonzero(numbers >= self._size)
        while len(outside):
            numbers[outside] = self._through(numbers[outside])
            outside = outside[numbers[outside] >= self._size]
        return numbers.astype(numpy.int64)

    def _through(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """Each number of the network's domain, of uint64, becomes another of them."""
        left, right = numbers >> self._half, numbers & self._mask
        for key in self._keys:
            left, right = right, left ^ (_scattered(right + key) & self._mask)
        return (left << self._half) | right


def _scattered(numbers: numpy.ndarray) -> numpy.ndarray:
    """Numbers of uint64, each bit of which depends on all (the last step of SplitMix64)."""
    numbers = (numbers ^ (numbers >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> numpy.uint64(31))
