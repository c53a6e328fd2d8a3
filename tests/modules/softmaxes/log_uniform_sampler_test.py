import math
from copy import deepcopy
from typing import List, Set

import pytest
import torch

from elmo_scratch.modules.softmaxes import LogUniformSampler

WORDS = 50


def sampler_of(num_samples: int, num_words: int = WORDS) -> LogUniformSampler:
    torch.manual_seed(13)
    return LogUniformSampler(num_words=num_words, num_samples=num_samples)


def law(num_words: int) -> List[float]:
    """The probability of each word in one try, without padding."""
    return [math.log((id + 1) / id) / math.log(num_words) for id in range(1, num_words)]


def test_a_single_draw_follows_the_law() -> None:
    sampler = sampler_of(num_samples=1)
    num_draws = 8_000
    counts = torch.zeros(WORDS)
    for _ in range(num_draws):
        sampled = sampler()
        assert sampled.num_tries == 1
        counts[sampled.ids] += 1
    expected = torch.tensor(law(WORDS)) * num_draws
    chi_square = ((counts[1:] - expected) ** 2 / expected).sum().item()
    # Of 48 degrees of freedom: 84 is exceeded by one of a thousand samples.
    assert chi_square < 84
    # The same sample is not taken for one of a law that is a little different.
    other = torch.tensor([1 / id for id in range(1, WORDS)])
    other *= num_draws / other.sum()
    assert ((counts[1:] - other) ** 2 / other).sum().item() > 84


@pytest.mark.parametrize("num_samples", [1, 7, 30, WORDS - 1])
def test_words_are_distinct_and_never_padding(num_samples: int) -> None:
    sampler = sampler_of(num_samples)
    for _ in range(50):
        ids = sampler().ids.tolist()
        assert ids == sorted(set(ids)) and len(ids) == num_samples
        assert 1 <= ids[0] and ids[-1] < WORDS


def test_tries_are_counted_until_the_last_new_word() -> None:
    # Independently: words drawn one by one from the same stream of uniform numbers.
    sampler = sampler_of(num_samples=20)
    generator = torch.Generator().manual_seed(int(sampler.seed))
    stream = torch.rand(20 * 2**5, dtype=torch.float64, generator=generator).tolist()
    found: Set[int] = set()
    tries = 0
    while len(found) < 20:
        found.add(int(math.exp(stream[tries] * math.log(WORDS))))
        tries += 1
    sampled = sampler()
    assert (sampled.ids.tolist(), sampled.num_tries) == (sorted(found), tries)


def test_expected_counts_are_shares_of_samples_with_a_word() -> None:
    sampler = sampler_of(num_samples=10)
    shares, expected, rounds = torch.zeros(WORDS), torch.zeros(WORDS - 1), 4000
    ids = torch.arange(1, WORDS)
    for _ in range(rounds):
        sampled = sampler()
        shares[sampled.ids] += 1 / rounds
        expected += sampler.log_expected_counts(ids, sampled.num_tries).exp() / rounds
    # Three standard deviations of a share are below 0.024.
    assert torch.allclose(shares[1:], expected, atol=0.024)


def test_expected_counts_are_those_of_tensorflow() -> None:
    # `log_uniform_candidate_sampler`: 1 - (1 - p)^tries, by hand for 3 tries among 7 words.
    sampler = sampler_of(num_samples=2, num_words=8)
    expected = [math.log(1 - (1 - math.log(2) / math.log(8)) ** 3)]
    expected += [math.log(1 - (1 - math.log(8 / 7) / math.log(8)) ** 3)]
    found = sampler.log_expected_counts(torch.tensor([1, 7]), 3).tolist()
    assert found == pytest.approx(expected, abs=1e-12)
    assert found[0] == pytest.approx(math.log(19 / 27), abs=1e-12)


def test_a_vocabulary_of_one_word_has_but_one_sample() -> None:
    sampled = sampler_of(num_samples=1, num_words=2)()
    assert sampled.ids.tolist() == [1]


def test_samples_differ_from_draw_to_draw_and_follow_the_global_seed() -> None:
    first, second = sampler_of(20), sampler_of(20)
    drawn = [first().ids.tolist() for _ in range(3)]
    assert drawn == [second().ids.tolist() for _ in range(3)]
    assert len({tuple(ids) for ids in drawn}) == 3
    torch.manual_seed(14)
    assert LogUniformSampler(num_words=WORDS, num_samples=20)().ids.tolist() != drawn[0]


def test_the_global_generator_is_left_alone() -> None:
    sampler = sampler_of(20)
    before = torch.get_rng_state()
    sampler()
    assert torch.equal(before, torch.get_rng_state())


def test_a_restored_sampler_goes_on_with_the_same_words() -> None:
    sampler = sampler_of(20)
    sampler()
    saved = deepcopy(sampler.state_dict())
    expected = [sampler().ids.tolist() for _ in range(3)]
    torch.manual_seed(99)
    restored = LogUniformSampler(num_words=WORDS, num_samples=20)
    restored.load_state_dict(saved)
    assert [restored().ids.tolist() for _ in range(3)] == expected


def test_names_of_its_tensors_are_a_file_format() -> None:
    assert set(sampler_of(20).state_dict()) == {"seed", "num_draws"}


@pytest.mark.parametrize("num_samples", [-1, 0, WORDS, 8192])
def test_a_number_of_samples_that_there_is_not_is_an_error(num_samples: int) -> None:
    with pytest.raises(ValueError, match=f"at most .* padding, 49, but got {num_samples}"):
        sampler_of(num_samples)
