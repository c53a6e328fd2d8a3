import copy
import pickle
import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, List, Sequence

import pytest
import torch

from elmo_scratch.modules.token_encoders.spelled_word_encoder import WordTable, WordVectorCache
from tests.kernels.frozen_weights import Change, each_change

CHARACTERS, DIM = 3, 5


class Vectors:
    """Vectors of words by their first character, through a cache, and what was computed."""

    def __init__(self, capacity: int) -> None:
        self.cache = WordVectorCache(capacity)
        self.layer = torch.nn.Linear(1, DIM).requires_grad_(False)
        self.computed: List[List[int]] = []

    def compute(self, ids: torch.Tensor) -> torch.Tensor:
        self.computed.append(ids[:, 0].tolist())
        return self.exact(ids)

    def exact(self, ids: torch.Tensor) -> torch.Tensor:
        # Number by number: a product may sum differently with another number of rows.
        return ids[:, :1] * self.layer.weight[:, 0] + self.layer.bias

    def of(self, *words: int) -> torch.Tensor:
        return self.cache.look_up(ids_of(words), list(self.layer.parameters()), self.compute)

    def pin(self, *words: int) -> None:
        self.cache.pin(ids_of(words), list(self.layer.parameters()), self.compute)

    def table(self) -> WordTable:
        return self.cache._table(list(self.layer.parameters()))

    def are_exact(self, *words: int) -> bool:
        return torch.equal(self.of(*words), self.exact(ids_of(words)))


def ids_of(words: Sequence[int]) -> torch.Tensor:
    return torch.tensor([[word, 1, 2] for word in words]).long().view(-1, CHARACTERS)


def test_a_word_is_computed_once() -> None:
    vectors = Vectors(capacity=10)
    assert vectors.are_exact(7, 4)
    assert vectors.are_exact(4, 9, 7)
    assert vectors.are_exact(9, 4)
    assert vectors.computed == [[7, 4], [9]]


def test_the_very_numbers_come_back() -> None:
    vectors = Vectors(capacity=10)
    first = vectors.of(7, 4, 9)
    assert torch.equal(vectors.of(9, 8, 7), torch.stack([first[2], vectors.of(8)[0], first[0]]))


def test_what_is_given_out_may_be_written_to() -> None:
    vectors = Vectors(capacity=10)
    for _ in range(3):
        vectors.of(7, 4).zero_()
    assert vectors.are_exact(7, 4)


def test_a_word_that_comes_twice_is_kept_once() -> None:
    vectors = Vectors(capacity=3)
    assert vectors.are_exact(7, 4, 7)
    assert vectors.are_exact(9, 9, 9)
    assert vectors.are_exact(4, 7, 4, 9)
    assert vectors.computed == [[7, 4, 7], [9, 9, 9]]
    for word in range(20, 30):
        assert vectors.are_exact(word, word)


def test_words_that_differ_in_any_character_are_different() -> None:
    cache = WordVectorCache(10)
    ids = torch.tensor([[261, 4, 9], [261, 4, 8], [5, 4, 9], [9, 4, 261]])
    for _ in range(2):
        found = cache.look_up(ids, [torch.zeros(1)], lambda ids: ids.float())
        assert torch.equal(found, ids.float())


def test_words_that_came_first_make_room() -> None:
    vectors = Vectors(capacity=3)
    vectors.of(1, 2, 3)
    assert vectors.are_exact(4)  # in place of 1
    assert vectors.are_exact(2, 3, 4)
    assert vectors.computed == [[1, 2, 3], [4]]
    assert vectors.are_exact(1)  # in place of 2
    assert vectors.are_exact(3, 4, 1)
    assert vectors.are_exact(2)
    assert vectors.computed == [[1, 2, 3], [4], [1], [2]]


def test_a_batch_of_more_new_words_than_there_is_room_for_is_answered_all_the_same() -> None:
    vectors = Vectors(capacity=3)
    vectors.of(8, 9)
    assert vectors.are_exact(1, 9, 2, 3, 4, 8, 5)
    assert vectors.computed[1:] == [[1, 2, 3, 4, 5]]
    assert vectors.are_exact(5, 4, 3, 2, 1)


@pytest.mark.parametrize("capacity", [1, 2, 3, 7, 100])
def test_whatever_is_asked_for_is_exact_and_no_more_is_kept_than_allowed(capacity: int) -> None:
    vectors, dice = Vectors(capacity), random.Random(13)
    for _ in range(100):
        assert vectors.are_exact(*dice.sample(range(20), dice.randrange(12)))
        table = vectors.table()
        assert len(table._places) == len(table._keys) <= capacity
        assert table._vectors is None or len(table._vectors) <= capacity


def test_a_cache_without_room_computes_everything() -> None:
    vectors = Vectors(capacity=0)
    assert vectors.are_exact(7, 4)
    assert vectors.are_exact(7, 4)
    assert vectors.computed == [[7, 4]] * 2


def test_no_word_is_no_vector() -> None:
    vectors = Vectors(capacity=3)
    assert vectors.of().shape == (0, DIM)
    assert vectors.are_exact(7)
    assert vectors.of().shape == (0, DIM)
    assert vectors.are_exact(7)
    assert [words for words in vectors.computed if words] == [[7]]


@pytest.mark.parametrize("capacity", [0, 1, 2, 3, 7])
def test_pinned_words_stay_beside_as_many_others_as_before(capacity: int) -> None:
    vectors, dice = Vectors(capacity), random.Random(13)
    vectors.of(1, 2, 3)
    vectors.pin(2, 5)
    vectors.pin(5, 6)
    del vectors.computed[:]
    for _ in range(100):
        assert vectors.are_exact(*dice.sample(range(20), dice.randrange(12)))
        table = vectors.table()
        assert len(table._places) == len(table._keys) <= 3 + capacity
        assert vectors.are_exact(6, 2, 5)
    computed = {word for words in vectors.computed for word in words}
    assert computed == set(range(20)) - {2, 5, 6}


def test_pinned_words_are_computed_once() -> None:
    vectors = Vectors(capacity=2)
    vectors.pin(1, 2, 3, 4, 5)
    vectors.pin(4, 6)
    vectors.pin()
    assert vectors.are_exact(6, 5, 4, 3, 2, 1)
    assert [words for words in vectors.computed if words] == [[1, 2, 3, 4, 5], [6]]


@each_change
def test_a_change_of_the_weights_unpins(change: Change) -> None:
    vectors = Vectors(capacity=1)
    vectors.pin(7, 4)
    change(vectors.layer, torch.nn.Linear(1, DIM).requires_grad_(False))
    assert vectors.are_exact(7, 4, 9)
    assert len(vectors.table()._keys) == 1
    vectors.pin(7)
    assert vectors.are_exact(9, 7)


def test_words_of_trained_weights_are_not_pinned() -> None:
    vectors = Vectors(capacity=1)
    vectors.layer.requires_grad_()
    vectors.pin(7, 4)
    assert vectors.computed == []
    assert vectors.are_exact(7, 4)


def test_vectors_of_trained_weights_are_never_kept() -> None:
    vectors = Vectors(capacity=10)
    vectors.of(7)
    vectors.layer.bias.requires_grad_()
    assert vectors.are_exact(7)
    assert vectors.of(7).requires_grad
    vectors.layer.bias.requires_grad_(False)
    assert not vectors.of(7).requires_grad
    assert vectors.computed == [[7]] * 4


@each_change
def test_a_change_of_the_weights_is_seen(change: Change) -> None:
    vectors = Vectors(capacity=10)
    before = vectors.of(7, 4)
    change(vectors.layer, torch.nn.Linear(1, DIM).requires_grad_(False))
    assert vectors.are_exact(7, 4)
    assert not torch.equal(vectors.of(7, 4), before)
    assert vectors.computed == [[7, 4]] * 2


def test_another_type_of_numbers_is_seen() -> None:
    vectors = Vectors(capacity=10)
    vectors.of(7)
    vectors.layer.double()
    assert vectors.of(7, 4).dtype == torch.float64
    assert vectors.are_exact(4, 7)


def test_what_autocast_rounds_is_not_given_out_without_it() -> None:
    vectors = Vectors(10)
    layer = torch.nn.Linear(1, DIM).requires_grad_(False)

    def look_up() -> torch.Tensor:
        return vectors.cache.look_up(
            ids_of([1, 2]), list(layer.parameters()), lambda ids: layer(ids[:, :1].float())
        )

    exact = look_up()
    with torch.autocast("cpu", torch.bfloat16):
        assert look_up().dtype == torch.bfloat16
    assert look_up().dtype == torch.float32
    assert torch.equal(look_up(), exact)


def test_without_weights_nothing_is_known_to_stay() -> None:
    # As in a module whose weights a wrapper has taken apart.
    vectors = Vectors(10)
    for _ in range(2):
        vectors.cache.look_up(ids_of([1]), [], vectors.compute)
    assert vectors.computed == [[1], [1]]


def test_threads_may_share_a_cache() -> None:
    vectors = Vectors(20)
    # While one thread computes, others look up the same words, and drop them.
    plain = vectors.compute

    def compute(ids: torch.Tensor) -> torch.Tensor:
        time.sleep(0.0005)
        return plain(ids)

    vectors.compute = compute  # type: ignore[method-assign]

    def are_exact(seed: int) -> bool:
        draw = random.Random(seed)
        return all(vectors.are_exact(*draw.sample(range(1, 40), 8)) for _ in range(100))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(are_exact, range(8)))


@pytest.mark.parametrize("known", [[], [7, 4]])
@pytest.mark.parametrize("pins", [False, True])
def test_a_word_whose_vector_could_not_be_kept_is_computed_anew(
    pins: bool, known: List[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU whose memory is short, where half of the batch is read again."""

    def fail(*_: torch.Tensor) -> None:
        raise torch.cuda.OutOfMemoryError

    vectors = Vectors(capacity=3)
    vectors.of(*known)
    with monkeypatch.context() as patch, pytest.raises(torch.cuda.OutOfMemoryError):
        patch.setattr(WordTable, "_write", fail)
        vectors.pin(9, 8) if pins else vectors.of(9, 8)
    assert vectors.are_exact(9)
    assert vectors.are_exact(8, 9, 7, 4)


def test_what_is_cleared_is_computed_anew() -> None:
    vectors = Vectors(capacity=10)
    vectors.of(7)
    vectors.cache.clear()
    assert vectors.are_exact(7)
    assert vectors.computed == [[7]] * 2


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copies_and_pickles_start_empty(
    twin_of: Callable[[WordVectorCache], WordVectorCache],
) -> None:
    vectors = Vectors(capacity=3)
    vectors.of(7)
    twin = twin_of(vectors.cache)
    assert twin.capacity == 3
    weights = list(vectors.layer.parameters())
    zero = twin.look_up(ids_of([7]), weights, lambda ids: torch.zeros(len(ids), DIM))
    assert not zero.any()
    assert vectors.are_exact(7)
    assert vectors.computed == [[7]]


def test_what_inference_mode_has_left_behind_serves_a_training_on_top() -> None:
    vectors = Vectors(capacity=3)
    with torch.inference_mode():
        vectors.of(7, 8)
        vectors.of(9)  # now it is full
    scale = torch.ones((), requires_grad=True)
    for words in ([7], [7, 4], [1, 2, 7]):
        (vectors.of(*words) * scale).sum().backward()
    with torch.inference_mode():
        assert vectors.are_exact(4, 8, 9)
    assert vectors.are_exact(4, 8, 9)
    assert scale.grad is not None
