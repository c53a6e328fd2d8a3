import torch

from elmo_scratch.modules.reading_order import reverse_sentences

LENGTHS = torch.tensor([5, 3, 1, 0])
MASK = torch.arange(5) < LENGTHS.unsqueeze(1)


def test_each_sentence_turns_within_its_own_length() -> None:
    vectors = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, -1, -2], [9, -3, -4, -5, -6], [-7] * 5])
    assert reverse_sentences(vectors.unsqueeze(-1), MASK).squeeze(-1).tolist() == [
        [5, 4, 3, 2, 1],
        [8, 7, 6, -1, -2],
        [9, -3, -4, -5, -6],
        [-7] * 5,
    ]


def test_a_vector_moves_as_a_whole() -> None:
    vectors = torch.arange(4 * 5 * 3).view(4, 5, 3)
    assert reverse_sentences(vectors, MASK)[1, 0].tolist() == vectors[1, 2].tolist()


def test_turning_twice_gives_back_what_came() -> None:
    vectors = torch.randn(4, 5, 3)
    assert torch.equal(reverse_sentences(reverse_sentences(vectors, MASK), MASK), vectors)


def test_gradients_flow_back_to_where_the_vectors_lay() -> None:
    vectors = torch.zeros(4, 5, 1, requires_grad=True)
    reverse_sentences(vectors, MASK)[1, 0].sum().backward()
    assert vectors.grad is not None
    assert vectors.grad.nonzero().tolist() == [[1, 2, 0]]
