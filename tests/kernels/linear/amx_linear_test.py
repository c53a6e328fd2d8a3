import pytest
import torch

from elmo_scratch.kernels.amx import MULTIPLY, AmxLinear

pytestmark = pytest.mark.skipif(not MULTIPLY, reason="this processor has no tiles")

each_size = pytest.mark.parametrize(
    "inputs, outputs",
    [(1, 1), (31, 65), (32, 64), (100, 130), (512, 2048), (4096, 512), (4128, 130)],
)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape).to(torch.bfloat16)


@pytest.mark.usefixtures("each_number_of_threads")
@pytest.mark.parametrize("rows", [0, 1, 15, 16, 17, 31, 32, 33, 300])
@each_size
def test_it_is_the_exact_product_rounded(inputs: int, outputs: int, rows: int) -> None:
    torch.manual_seed(13)
    weight, vectors = random(outputs, inputs), random(rows, inputs)
    bias, summand = random(outputs), random(rows, outputs)
    product = AmxLinear(weight)
    exact = vectors.double() @ weight.double().t()
    kinds = [(None, None), (bias, None), (None, summand), (bias, summand)]
    for own_bias, own_summand in kinds:
        expected = exact.clone()
        for part in (own_bias, own_summand):
            expected += 0 if part is None else part.double()
        done = product(vectors, own_bias, own_summand)
        assert done.shape == (rows, outputs) and done.dtype == torch.bfloat16
        assert torch.allclose(done.double(), expected, rtol=2**-8, atol=1e-3)


@pytest.mark.usefixtures("each_number_of_threads")
@each_size
def test_no_row_depends_on_others_to_the_bit(inputs: int, outputs: int) -> None:
    torch.manual_seed(13)
    product = AmxLinear(random(outputs, inputs))
    vectors, bias, summand = random(300, inputs), random(outputs), random(300, outputs)
    whole = product(vectors, bias, summand)
    for start in (0, 1, 15, 17, 130, 263):
        for size in (1, 2, 16, 17, 33, 37):
            rows = slice(start, start + size)
            assert torch.equal(product(vectors[rows], bias, summand[rows]), whole[rows])


@pytest.mark.usefixtures("each_number_of_threads")
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "inputs, outputs, rows", [(100, 70, 33), (70, 1030, 33), (600, 1030, 1800)]
)
def test_one_product_is_as_one_of_many(
    inputs: int, outputs: int, rows: int, dtype: torch.dtype, is_turned: bool
) -> None:
    torch.manual_seed(13)
    weight, vectors, bias = torch.randn(outputs, inputs), random(rows, inputs), random(outputs)
    weight = weight.to(dtype)
    weight = weight.t().contiguous().t() if is_turned else weight
    expected = AmxLinear(weight.to(torch.bfloat16))(vectors, bias)
    once = AmxLinear(weight, is_for_one=True)
    assert torch.equal(once(vectors, bias), expected)
    assert torch.equal(once.unpacked(), weight.to(torch.bfloat16))


def test_numbers_may_lie_scattered_in_memory() -> None:
    product = AmxLinear(random(64, 96).t())
    vectors, summand = random(64, 20).t(), random(20, 200)[:, 50:146]
    expected = product(vectors.contiguous(), None, summand.contiguous())
    assert torch.equal(product(vectors, None, summand), expected)


def test_what_it_takes_stays_as_it_was() -> None:
    product = AmxLinear(random(64, 96))
    given = (random(20, 96), random(64), random(20, 64))
    before = [tensor.clone() for tensor in given]
    product(*given)
    assert all(torch.equal(*pair) for pair in zip(given, before, strict=True))


def test_what_is_no_number_stays_in_its_row() -> None:
    vectors = random(20, 96)
    vectors[7, 3], vectors[9, 5] = float("nan"), float("inf")
    done = AmxLinear(torch.ones(64, 96).to(torch.bfloat16))(vectors)
    assert done.isnan().any(dim=1).nonzero().flatten().tolist() == [7]
    assert done[9].eq(float("inf")).all()


@each_size
def test_weights_can_be_had_back(inputs: int, outputs: int) -> None:
    weight = random(outputs, inputs)
    assert torch.equal(AmxLinear(weight).unpacked(), weight)


def test_it_knows_what_it_multiplies() -> None:
    assert AmxLinear.knows(random(3, 5))
    assert not AmxLinear.knows(torch.zeros(3, 5).double())
    assert not AmxLinear.knows(random(0, 5))
    assert not AmxLinear.knows(random(3, 5).to("meta"))


def test_what_does_not_fit_is_not_taken() -> None:
    product, vectors, bias, summand = (
        AmxLinear(random(3, 5)),
        random(4, 5),
        random(3),
        random(4, 3),
    )
    assert product.can_take(vectors) and product.can_take(vectors, bias, summand)
    for unfit in (random(4, 4), random(4, 6), random(4, 1, 5), vectors.float(), vectors.to("meta")):
        assert not product.can_take(unfit)
    for unfit in (random(4), random(4, 3), random(1), bias.float()):
        assert not product.can_take(vectors, unfit)
    for unfit in (random(3), random(4, 4), random(3, 3), summand.float()):
        assert not product.can_take(vectors, None, unfit)


def test_what_other_code_does_with_tiles_is_not_disturbed() -> None:
    # oneDNN multiplies with them too, in the same threads.
    weight, vectors = random(512, 512), random(70, 512)
    product = AmxLinear(weight)
    before = torch.nn.functional.linear(vectors, weight)
    ours = product(vectors)
    for _ in range(3):
        assert torch.equal(torch.nn.functional.linear(vectors, weight), before)
        assert torch.equal(product(vectors), ours)
