"""Thirty random shapes for each kernel. A failure names the one at which it occurred."""

import random
from typing import List, Tuple

import pytest
import torch

from elmo_scratch.kernels import amx, char_convolution, onednn
from elmo_scratch.kernels.amx import AmxLinear
from elmo_scratch.kernels.char_convolution import convolved_maxima
from elmo_scratch.kernels.pointwise import highway_gate, sigmoid_
from elmo_scratch.kernels.weight_gradients import (
    MULTIPLY_GRADIENTS,
    multiply_gradients,
    weight_gradients,
)
from tests.kernels.char_convolution_test import exactly, random_convolved
from tests.kernels.highway_test import asking, by_formula
from tests.modules.token_encoders.character_convolution_test import (
    convolve_everything,
    malformed_words,
    random_convolution,
)

SHAPES = 30

pytestmark = pytest.mark.usefixtures("two_threads")


@pytest.fixture
def draw() -> random.Random:
    return random.Random(13)


def size(draw: random.Random, most: int) -> int:
    """Small sizes are as likely as large ones, and those around powers of two likelier."""
    near = 2 ** draw.randint(0, most.bit_length() - 1) + draw.randint(-1, 1)
    return max(1, min(most, draw.choice([near, draw.randint(1, most)])))


def close(ours: torch.Tensor, exact: torch.Tensor, rounding: float = 1e-5) -> bool:
    """Whether numbers are those of float64 but for their rounding, measured at the largest."""
    bound = rounding * max(1.0, exact.abs().max().item()) if exact.numel() else 0.0
    return ours.shape == exact.shape and torch.allclose(ours.double(), exact, rtol=0, atol=bound)


def filters_for(draw: random.Random, characters: int) -> List[Tuple[int, int]]:
    return [
        (draw.randint(1, min(characters, 9)), size(draw, 70)) for _ in range(draw.randint(1, 4))
    ]


def test_convolutions(draw: random.Random) -> None:
    for _ in range(SHAPES):
        characters = draw.randint(3, 50)
        shape = characters, filters_for(draw, characters), draw.choice(["relu", "tanh"])
        convolution, ids = random_convolution(*shape[1:]), malformed_words(characters)
        assert close(convolution(ids), convolve_everything(convolution, ids), 1e-12), shape


@pytest.mark.skipif(not char_convolution.CONVOLVE, reason="there is no compiled convolution")
def test_compiled_convolutions(draw: random.Random) -> None:
    for _ in range(SHAPES):
        dtype = draw.choice(list(char_convolution.CONVOLVE))
        characters = draw.randint(3, 50)
        filters, dim = filters_for(draw, characters), 16 * draw.randint(1, 4)
        given = random_convolved(malformed_words(characters), filters, dtype, dim)
        shape = dtype, characters, filters, dim
        maxima = convolved_maxima(*given)
        assert maxima is not None and close(maxima, exactly(given)), shape


def test_weight_gradients(draw: random.Random) -> None:
    for _ in range(SHAPES):
        shape = size(draw, 300), size(draw, 1200), size(draw, 700), size(draw, 70)
        dtype = draw.choice([torch.float32, torch.bfloat16])
        rows, outputs, *inputs = shape
        gradients = torch.randn(rows, outputs).to(dtype)
        parts = [torch.randn(rows, width).to(dtype) for width in inputs]
        # Without tiles gradients in bfloat16 are rounded to it.
        rounding = max(1e-5, torch.finfo(dtype).eps)
        made = weight_gradients(gradients, parts, torch.float32)
        for weight, part in zip(made.weights, parts, strict=True):
            exact = gradients.double().t() @ part.double()
            assert close(weight, exact, rounding), (shape, dtype)
        assert close(made.bias, gradients.double().sum(dim=0), rounding), (shape, dtype)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="there is no oneDNN")
def test_products_in_float32(draw: random.Random) -> None:
    for _ in range(SHAPES):
        rows, inputs, columns = shape = size(draw, 700), size(draw, 1300), size(draw, 700)
        left, right = torch.randn(rows, inputs), torch.randn(inputs, columns)
        turned = [draw.choice([True, False]) for _ in range(2)]
        given_left, given_right = (
            part.t().contiguous().t() if is_turned else part
            for part, is_turned in zip((left, right), turned)
        )
        summand = draw.choice([None, torch.randn(columns)])
        exact = left.double() @ right.double() + (0 if summand is None else summand.double())
        made = onednn.multiply(given_left, given_right, summand)
        assert close(made, exact), (shape, turned, summand is None)


@pytest.mark.skipif(not amx.MULTIPLY, reason="this processor has no tiles")
def test_tiled_products(draw: random.Random) -> None:
    for _ in range(SHAPES):
        rows, inputs, outputs = shape = size(draw, 300), size(draw, 4200), size(draw, 600)
        weight, vectors, bias, summand = (
            torch.randn(*sizes).to(torch.bfloat16)
            for sizes in ((outputs, inputs), (rows, inputs), (outputs,), (rows, outputs))
        )
        exact = vectors.double() @ weight.double().t() + bias.double() + summand.double()
        assert close(AmxLinear(weight)(vectors, bias, summand), exact, 2**-8), shape


@pytest.mark.parametrize("dtype", MULTIPLY_GRADIENTS)
def test_compiled_gradients(dtype: torch.dtype, draw: random.Random) -> None:
    for _ in range(SHAPES):
        rows, outputs, inputs = shape = size(draw, 700), size(draw, 600), size(draw, 600)
        gradients, part = (torch.randn(rows, width).to(dtype) for width in (outputs, inputs))
        (made,), sums = multiply_gradients(gradients, [part])
        assert close(made, gradients.double().t() @ part.double()), shape
        assert close(sums, gradients.double().sum(dim=0)), shape


def test_highway_gates(draw: random.Random) -> None:
    for _ in range(SHAPES):
        shape = size(draw, 70), size(draw, 300), draw.choice([torch.float32, torch.bfloat16])
        tensors = asking(*shape)
        assert close(highway_gate(*tensors), by_formula(*tensors)), shape


def test_sigmoids(draw: random.Random) -> None:
    for _ in range(SHAPES):
        numbers = 3 * torch.randn(size(draw, 100_000))
        expected = torch.sigmoid(numbers.double())
        assert close(sigmoid_(numbers), expected, 1e-6), len(expected)
