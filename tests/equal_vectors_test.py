"""A sentence's vectors, to the bit, whatever else is in the batch."""

import random
from typing import Iterator, List, NamedTuple, Tuple

import numpy
import pytest
import torch

from elmo_scratch.data.spelling import CharacterWordIndexer
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.files.identity import ReadFiles
from elmo_scratch.interop.official import build_bilm
from elmo_scratch.interop.official.options import CharCnnOptions, LstmOptions, Options
from elmo_scratch.kernels.library import INSTRUCTIONS, Instructions
from tests import FIXTURES_ROOT
from tests.kernels.frozen_weights import needs_independent_rows

LENGTHS = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
BATCH_SIZES = [1, 2, 7, 16, 41]
NUM_SENTENCES = 41
"""Some of them several times, in each order that is tried."""


class Sizes(NamedTuple):
    """The sizes of a biLM."""

    cell: int
    dim: int
    filters: Tuple[Tuple[int, int], ...]


SIZES = [
    Sizes(24, 16, ((1, 4), (2, 8), (3, 16))),
    # No number of numbers is even.
    Sizes(7, 3, ((1, 5), (3, 6))),
    # Neither the LSTMs nor the words are projected.
    Sizes(32, 32, ((1, 16), (2, 16))),
    # Gates of a batch are shared out to several threads.
    Sizes(512, 128, ((1, 32), (2, 32), (3, 64), (4, 128))),
]


each_size = pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{sizes.cell}-{sizes.dim}")


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


each_precision = pytest.mark.parametrize(
    "dtype",
    [
        "float32",
        pytest.param(
            "bfloat16",
            marks=pytest.mark.skipif(
                INSTRUCTIONS < Instructions.TILES, reason="oneDNN makes no promise about threads"
            ),
        ),
    ],
)


def layers_of(sizes: Sizes, state: str, dtype: str = "float32") -> SentenceLayers:
    torch.manual_seed(13)
    options = Options(
        LstmOptions(sizes.cell, sizes.dim, 2, 3.0, 3.0, True),
        CharCnnOptions(16, sizes.filters, 2, "relu", 50),
    )
    bilm = build_bilm(options, None, state=state, matmul_dtype="float32")
    files = ReadFiles([])
    layers = SentenceLayers(bilm, CharacterWordIndexer(50), files, matmul_dtype=dtype)
    assert layers.matmul_dtype == dtype
    if state == "warm":
        layers.warm_up(sentences_of_all_lengths())
    return layers


def sentences_of_all_lengths() -> List[List[str]]:
    """Two of each length, from a text."""
    words = (FIXTURES_ROOT / "text" / "sentences.txt").read_text(encoding="utf-8").split()
    dice = random.Random(13)
    starts = [(dice.randrange(len(words) - length), length) for length in 2 * LENGTHS]
    return [words[start : start + length] for start, length in starts]


def in_batches(
    layers: SentenceLayers, sentences: List[List[str]], size: int
) -> Iterator[numpy.ndarray]:
    for first in range(0, len(sentences), size):
        yield from layers(sentences[first : first + size])


def forget_words(layers: SentenceLayers) -> None:
    """Lets words be encoded together with others than before."""
    layers.bilm.token_encoder.forget_words()  # type: ignore[operator]


def check_any_order(layers: SentenceLayers, alone: List[numpy.ndarray]) -> None:
    """Reads sentences in several orders and batches of several sizes."""
    sentences, dice = sentences_of_all_lengths(), random.Random(7)
    for size in BATCH_SIZES:
        forget_words(layers)
        order = dice.choices(range(len(sentences)), k=NUM_SENTENCES)
        arrays = in_batches(layers, [sentences[number] for number in order], size)
        for number, array in zip(order, arrays, strict=True):
            assert numpy.array_equal(array, alone[number]), (size, len(sentences[number]))


@needs_independent_rows
@each_precision
@each_size
def test_vectors_depend_neither_on_the_batch_nor_on_the_order_nor_on_threads(
    sizes: Sizes, dtype: str, threads: int
) -> None:
    torch.set_num_threads(1)
    layers = layers_of(sizes, "reset", dtype)
    alone = [layers([sentence])[0] for sentence in sentences_of_all_lengths()]
    torch.set_num_threads(threads)
    check_any_order(layers, alone)


@needs_independent_rows
@each_size
def test_nor_do_they_warmed_up(sizes: Sizes) -> None:
    layers = layers_of(sizes, "warm")
    check_any_order(layers, [layers([sentence])[0] for sentence in sentences_of_all_lengths()])


@needs_independent_rows
@each_size
def test_vectors_do_not_depend_on_pieces(sizes: Sizes) -> None:
    sentences = sentences_of_all_lengths()
    whole = layers_of(sizes, "reset")(sentences)
    for positions in (1, 10, 100):
        layers = layers_of(sizes, "reset")
        layers._positions_at_once = positions
        assert all(numpy.array_equal(*both) for both in zip(layers(sentences), whole, strict=True))
