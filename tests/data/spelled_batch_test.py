import torch

from elmo_scratch.data.spelling import IndexedBatch

IDS = torch.tensor([[5, 6, 0], [7, 0, 0], [0, 0, 0], [8, 9, 3]])
LENGTHS = [2, 1, 0, 3]


def test_the_mask_shows_where_a_sentence_has_ended() -> None:
    batch = IndexedBatch.of(IDS, LENGTHS)
    assert torch.equal(batch.ids, IDS)
    assert torch.equal(batch.mask, IDS > 0)
    assert batch.lengths == LENGTHS


def test_it_is_as_long_as_its_longest_sentence() -> None:
    batch = IndexedBatch.of(IDS, LENGTHS).rows(0, 2)
    assert batch.ids.tolist() == [[5, 6], [7, 0]]
    assert batch.mask.tolist() == [[True, True], [True, False]]
    assert batch.lengths == [2, 1]


def test_characters_are_an_axis_of_their_own() -> None:
    batch = IndexedBatch.of(torch.ones(2, 4, 11), [3, 2])
    assert batch.ids.shape == (2, 3, 11)
    assert batch.mask.shape == (2, 3)


def test_words_are_spelled_out_for_a_token_encoder() -> None:
    words = torch.tensor([[7, 4], [8, 0], [9, 9]])
    batch = IndexedBatch.of(torch.tensor([[2, 0], [1, 0], [0, 0]]), [2, 1, 0], words)
    assert batch.token_ids().tolist() == [[[9, 9], [7, 4]], [[8, 0], [0, 0]], [[0, 0], [0, 0]]]
    assert batch.rows(1, 2).token_ids().tolist() == [[[8, 0]]]


def test_a_part_has_its_own_words_alone() -> None:
    words = torch.tensor([[7, 4], [8, 0], [9, 9]])
    part = IndexedBatch.of(torch.tensor([[0, 0], [2, 1], [1, 0]]), [1, 2, 1], words).rows(1, 3)
    assert part.words is not None
    assert part.words.tolist() == [[8, 0], [9, 9]]
    assert part.ids.tolist() == [[1, 0], [0, 0]]


def test_without_words_the_ids_are_what_a_token_encoder_reads() -> None:
    assert torch.equal(IndexedBatch.of(IDS, LENGTHS).token_ids(), IDS)


def test_no_sentence_and_empty_ones_have_no_token() -> None:
    assert IndexedBatch.of(IDS[:0], []).mask.shape == (0, 0)
    assert IndexedBatch.of(IDS, LENGTHS).rows(2, 3).ids.shape == (1, 0)
