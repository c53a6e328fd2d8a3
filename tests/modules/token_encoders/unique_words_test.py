import pytest
import torch

from elmo_scratch.alphabet import NUM_BATCH_IDS
from elmo_scratch.modules.token_encoders import spelled_word_encoder
from elmo_scratch.modules.token_encoders.spelled_word_encoder import UniqueWords

IDS = torch.tensor([[7, 4, 9], [8, 0, 0], [7, 4, 9], [9, 4, 7], [8, 0, 0], [7, 4, 8]])


def test_each_word_is_there_once() -> None:
    words = UniqueWords.of(IDS)
    assert sorted(words.ids.tolist()) == [[7, 4, 8], [7, 4, 9], [8, 0, 0], [9, 4, 7]]


def test_each_word_of_the_batch_knows_its_place() -> None:
    words = UniqueWords.of(IDS)
    assert torch.equal(words.ids[words.places], IDS)


@pytest.mark.parametrize("rows, characters", [(0, 3), (0, 50), (1, 3), (6, 1)])
def test_batches_may_be_small(rows: int, characters: int) -> None:
    ids = torch.zeros(rows, characters).long()
    words = UniqueWords.of(ids)
    assert words.ids.shape == (min(rows, 1), characters)
    assert words.places.tolist() == [0] * rows


def test_many_random_words_are_told_apart() -> None:
    torch.manual_seed(13)
    ids = torch.randint(0, NUM_BATCH_IDS, (500, 50))[torch.randint(0, 500, (2000,))]
    words = UniqueWords.of(ids)
    assert torch.equal(words.ids[words.places], ids)
    assert len(words.ids) == len({tuple(row) for row in ids.tolist()})


@pytest.mark.parametrize("characters", [1, 3, 50])
def test_words_that_differ_in_one_character_have_different_codes(characters: int) -> None:
    ids = torch.ones(characters * (NUM_BATCH_IDS - 1) + 1, characters).long()
    for place in range(characters):
        rows = slice(place * (NUM_BATCH_IDS - 1), (place + 1) * (NUM_BATCH_IDS - 1))
        ids[rows, place] = torch.tensor([id for id in range(NUM_BATCH_IDS) if id != 1])
    assert len(set(spelled_word_encoder._codes(ids).tolist())) == len(ids)


@pytest.mark.parametrize("num_codes", [1, 2, 3])
def test_words_whose_codes_collide_are_told_apart(
    num_codes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spelled_word_encoder, "_codes", lambda ids: ids.sum(dim=1) % num_codes)
    words = UniqueWords.of(IDS)
    assert len(words.ids) == 4
    assert torch.equal(words.ids[words.places], IDS)


def test_random_numbers_of_a_training_are_not_disturbed() -> None:
    before = torch.get_rng_state()
    UniqueWords.of(IDS)
    assert torch.equal(torch.get_rng_state(), before)
