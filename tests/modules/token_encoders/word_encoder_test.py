from typing import Tuple

import pytest
import torch

from elmo_scratch.modules.token_encoders import WordEncoder

IDS = torch.tensor([[7, 4, 9], [8, 0, 0]])


@pytest.fixture
def encoder() -> WordEncoder:
    """Its vectors are [10 * id, 10 * id + 1, 10 * id + 2], but for padding."""
    encoder = WordEncoder(dim=3, num_words=11, begin_id=2, end_id=5)
    with torch.no_grad():
        encoder.embedding.weight[1:] = torch.arange(1, 11).unsqueeze(1) * 10.0 + torch.arange(3)
    return encoder


def test_each_word_and_each_mark_has_its_own_vector(encoder: WordEncoder) -> None:
    encoded = encoder(IDS, IDS > 0)
    assert encoded.vectors[..., 0].tolist() == [[20, 70, 40, 90, 50], [20, 80, 50, 0, 0]]
    assert encoded.vectors[..., 2].tolist() == [[22, 72, 42, 92, 52], [22, 82, 52, 0, 0]]
    assert encoded.mask.tolist() == [[True] * 5, [True] * 3 + [False] * 2]


def test_padding_is_zero_and_is_never_trained(encoder: WordEncoder) -> None:
    optimizer = torch.optim.SGD(encoder.parameters(), lr=1.0)
    before = encoder.embedding.weight.detach().clone()
    encoder(IDS, IDS > 0).vectors.sum().backward()
    optimizer.step()
    trained = (encoder.embedding.weight != before).all(dim=-1)
    assert trained.nonzero().flatten().tolist() == [2, 4, 5, 7, 8, 9]
    assert encoder.embedding.weight[0].tolist() == [0, 0, 0]


def test_sparse_gradients_are_the_same_rows(encoder: WordEncoder) -> None:
    sparse = WordEncoder(dim=3, num_words=11, begin_id=2, end_id=5, sparse=True)
    sparse.load_state_dict(encoder.state_dict())
    ids = torch.tensor([[7, 4, 7], [8, 0, 0]])
    weights = torch.randn(2, 5, 3)
    for each in (encoder, sparse):
        encoded = each(ids, ids > 0)
        assert torch.equal(encoded.vectors, encoder(ids, ids > 0).vectors)
        (encoded.vectors * weights).sum().backward()
    gradient, dense = sparse.embedding.weight.grad, encoder.embedding.weight.grad
    assert gradient is not None and dense is not None
    assert gradient.coalesce().indices().tolist() == [[2, 4, 5, 7, 8]]
    assert torch.allclose(gradient.to_dense(), dense)
    with torch.no_grad():
        assert torch.equal(sparse(IDS, IDS > 0).vectors, encoder(IDS, IDS > 0).vectors)


def test_sparse_gradients_of_words_are_the_same_rows(encoder: WordEncoder) -> None:
    sparse = WordEncoder(dim=3, num_words=11, begin_id=2, end_id=5, sparse=True)
    sparse.load_state_dict(encoder.state_dict())
    words = torch.tensor([2, 5, 1, 7, 1, 9])  # of running text, two of which are unknown
    weights = torch.randn(6, 3)
    for each in (encoder, sparse):
        vectors = each.encode_words(words)
        assert vectors[:, 0].tolist() == [20, 50, 10, 70, 10, 90]
        (vectors * weights).sum().backward()
    gradient, dense = sparse.embedding.weight.grad, encoder.embedding.weight.grad
    assert gradient is not None and dense is not None
    assert gradient.is_sparse and not dense.is_sparse
    assert gradient.coalesce().indices().tolist() == [[1, 2, 5, 7, 9]]
    assert torch.allclose(gradient.to_dense(), dense)


def test_sparse_gradients_are_the_same_each_time_to_the_bit(two_threads: None) -> None:
    torch.manual_seed(13)
    encoder = WordEncoder(dim=128, num_words=20, begin_id=1, end_id=2, sparse=True)
    ids = torch.randint(1, 20, (32, 40))
    back = torch.randn(32, 42, 128)

    def gradient() -> torch.Tensor:
        vectors = encoder(ids, ids > 0).vectors
        (found,) = torch.autograd.grad(vectors, encoder.embedding.weight, back)
        return found.to_dense()

    first = gradient()
    assert all(torch.equal(gradient(), first) for _ in range(20))


def test_a_batch_of_nothing_has_a_sparse_gradient_too() -> None:
    encoder = WordEncoder(dim=3, num_words=11, begin_id=2, end_id=5, sparse=True)
    nothing = torch.zeros(2, 0, dtype=torch.long)
    assert encoder(nothing, nothing > 0).vectors.shape == (2, 2, 3)


def test_fresh_vectors_are_random_and_of_unit_size() -> None:
    torch.manual_seed(13)
    weight = WordEncoder(dim=101, num_words=503, begin_id=1, end_id=2).embedding.weight.detach()
    assert weight[0].tolist() == [0] * 101
    assert weight[1:].norm(dim=-1).mean().item() == pytest.approx(1.0, abs=0.05)


def test_only_the_words_vectors_are_kept_in_a_file(encoder: WordEncoder) -> None:
    assert list(encoder.state_dict()) == ["embedding.weight"]


def test_it_knows_the_ids_of_the_marks(encoder: WordEncoder) -> None:
    assert encoder.mark_ids() == (2, 5)


@pytest.mark.parametrize("bad", [-1, 11, 2**16 + 3])
@pytest.mark.parametrize("place", [(0, 1), (1, 2)])
def test_ids_that_are_no_words_are_an_error(
    bad: int, place: Tuple[int, int], encoder: WordEncoder
) -> None:
    # Under the padding, too: where there are ids below 0, the mask took them for padding.
    ids = IDS.clone()
    ids[place] = bad
    with pytest.raises(ValueError, match=f"ids of words from 0 to 10, but got ids from.* {bad}"):
        encoder(ids, IDS > 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.int8, torch.bool])
def test_ids_of_another_type_are_an_error(dtype: torch.dtype, encoder: WordEncoder) -> None:
    with pytest.raises(ValueError, match=f"ids of words of the type .* but got {dtype}"):
        encoder(IDS.to(dtype), IDS > 0)


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32])
def test_ids_can_be_of_a_smaller_type(dtype: torch.dtype, encoder: WordEncoder) -> None:
    expected = encoder(IDS, IDS > 0)
    assert torch.equal(encoder(IDS.to(dtype), IDS > 0).vectors, expected.vectors)
