import pytest
import torch

from elmo_scratch.kernels import onednn
from elmo_scratch.kernels.onednn import has_kernels_for, linear, pack, padded_rows
from tests.kernels.frozen_weights import EACH_INDEPENDENT_DTYPE

pytestmark = pytest.mark.skipif(
    not has_kernels_for(torch.zeros(1, 1)), reason="this PyTorch has no oneDNN"
)

INPUTS, OUTPUTS = 5, 7

each_layout = pytest.mark.parametrize("is_packed", [False, True])


@each_layout
@pytest.mark.parametrize("rows", [1, 2, 127, 128, 129, 143, 144, 300])
def test_rows_that_fill_up_do_not_show(rows: int, is_packed: bool) -> None:
    torch.manual_seed(13)
    weight, vectors = torch.randn(OUTPUTS, INPUTS), torch.randn(rows, INPUTS)
    own, bias = pack(weight) if is_packed else weight, torch.ones(OUTPUTS)
    whole = linear(vectors, own, bias)
    assert whole.shape == (rows, OUTPUTS)
    assert torch.allclose(whole, vectors @ weight.t() + 1, atol=1e-5)
    parts = [linear(part, own, bias) for part in vectors.split(50)]
    assert torch.equal(whole, torch.cat(parts))


@each_layout
def test_a_summand_is_added(is_packed: bool) -> None:
    torch.manual_seed(13)
    weight, vectors = torch.randn(OUTPUTS, INPUTS), torch.randn(3, INPUTS)
    summand = torch.randn(3, OUTPUTS)
    expected = summand + vectors @ weight.t()
    own = pack(weight) if is_packed else weight
    assert torch.allclose(linear(vectors, own, summand=summand.clone()), expected, atol=1e-5)
    alone = linear(vectors[:1], own, summand=summand[:1].clone())
    assert torch.allclose(alone, expected[:1], atol=1e-5)


@pytest.mark.parametrize("dtype", EACH_INDEPENDENT_DTYPE)
def test_a_row_does_not_depend_on_how_many_rows_come_with_it(dtype: torch.dtype) -> None:
    torch.manual_seed(13)
    weight = torch.randn(512, 2048).to(dtype)
    if torch.cpu._is_amx_tile_supported() and dtype == torch.bfloat16:
        pytest.skip("with AMX the promise is that of the package's own tiles")
    packed = pack(weight)
    vectors = torch.randn(70, 2048).to(dtype)
    whole = linear(vectors, packed)
    for start, end in [(0, 1), (69, 70), (0, 2), (11, 16), (3, 70)]:
        assert torch.equal(linear(vectors[start:end], packed), whole[start:end])


def test_weights_can_be_had_back() -> None:
    weight = torch.randn(OUTPUTS, INPUTS)
    assert torch.equal(pack(weight).to_dense(), weight)


def test_it_knows_what_it_multiplies() -> None:
    assert has_kernels_for(torch.zeros(3, 5))
    assert not has_kernels_for(torch.zeros(3, 5).double())
    assert not has_kernels_for(torch.zeros(0, 5))
    assert not has_kernels_for(torch.zeros(3, 5, device="meta"))
    with torch.backends.mkldnn.flags(enabled=False):
        assert not has_kernels_for(torch.zeros(3, 5))


def test_a_processor_without_kernels_is_known_by_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("could not create a primitive descriptor")

    monkeypatch.setattr(onednn, "linear", refuse)
    assert not onednn._has_kernels.__wrapped__(torch.float32)


def test_many_rows_go_to_a_multiple() -> None:
    sizes = (0, 1, 127, 128, 129, 144, 145)
    assert [padded_rows(size) for size in sizes] == [0, 1, 127, 128, 144, 144, 160]
