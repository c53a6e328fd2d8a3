from pathlib import Path
from typing import Any, Dict, List
from unittest.mock import patch

import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenIndexer

from elmo_scratch.alphabet import character_ids
from elmo_scratch.data import AgNewsReader, CharacterIndexer, SentencesReader
from elmo_scratch.data.corpus import PreparedCorpus
from elmo_scratch.data.streams import StreamLoader, random_sizes

TEXT = ["the cat sat", "a dog", "on the mat the cat slept", "dogs <S> bark", "and", "so on"]
OTHER_TEXT = ["the mat", "was red and wet", "it rained a lot"]
VOCABULARY = ["the", "cat", "on", "a", "mat", "and", "so"]
MARKS = ["<S>", "</S>"]

Sentences = List[List[str]]


def vocabulary() -> Vocabulary:
    vocab = Vocabulary()
    vocab.add_tokens_to_namespace([*VOCABULARY, *MARKS])
    return vocab


def reader_of(with_characters: bool = False, **settings: Any) -> SentencesReader:
    indexers: Dict[str, TokenIndexer] = {"tokens": SingleIdTokenIndexer()}
    if with_characters:
        indexers["characters"] = CharacterIndexer(max_characters_per_token=12)
    return SentencesReader(token_indexers=indexers, **settings)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with two files."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "1.txt").write_text("\n".join(TEXT) + "\n")
    (folder / "2.txt").write_text("\n".join(OTHER_TEXT) + "\n")
    return folder


def loader_of(corpus: Path, with_characters: bool = False, **settings: Any) -> StreamLoader:
    loader = StreamLoader(
        reader_of(with_characters),
        str(corpus / "*.txt"),
        **{"batch_size": 3, "unroll_steps": 4, "cache_dir": str(corpus / "cache"), **settings},
    )
    loader.index_with(vocabulary())
    return loader


def batches_of(loader: StreamLoader) -> List[Dict[str, torch.Tensor]]:
    return [batch["windows"] for batch in loader]  # type: ignore[misc]


def read_words(batches: List[Dict[str, torch.Tensor]], direction: str, row: int) -> List[str]:
    """What a direction reads of a stream, as far as the vocabulary knows it."""
    vocab = vocabulary()
    return [
        vocab.get_token_from_index(int(batch["words"][place]))
        for batch in batches
        for place in batch[direction][row][batch["mask"][row]]
    ]


def as_known(sentence: str) -> List[str]:
    known = {*VOCABULARY, *MARKS}
    return [word if word in known else "@@UNKNOWN@@" for word in sentence.split()]


def test_each_direction_reads_all_sentences(corpus: Path) -> None:
    batches = batches_of(loader_of(corpus))
    left_to_right = [word for row in range(3) for word in read_words(batches, "left_to_right", row)]
    right_to_left = [word for row in range(3) for word in read_words(batches, "right_to_left", row)]
    sentences = [as_known(sentence) for sentence in TEXT + OTHER_TEXT]
    assert left_to_right == [word for one in sentences for word in ("<S>", *one, "</S>")]
    assert right_to_left == [word for one in sentences for word in ("</S>", *one[::-1], "<S>")]


def test_what_follows_within_a_sentence_is_the_target_even_across_windows(corpus: Path) -> None:
    for size in (1, 4, 30):
        batches = batches_of(loader_of(corpus, unroll_steps=size, batch_size=1))
        vocab = vocabulary()
        for direction, end in (("left_to_right", "</S>"), ("right_to_left", "<S>")):
            targets = [int(word) for batch in batches for word in batch[f"{direction}_targets"][0]]
            words = [vocab.get_token_from_index(word) for word in targets if word > 0]
            steps = 1 if direction == "left_to_right" else -1
            expected = []
            for sentence in TEXT + OTHER_TEXT:
                expected += [*as_known(sentence)[::steps], end]
            assert words == expected
            assert sum(len(sentence.split()) + 1 for sentence in TEXT + OTHER_TEXT) == len(words)


def test_words_are_spelled_where_the_reader_has_an_indexer_of_characters(corpus: Path) -> None:
    assert "characters" not in batches_of(loader_of(corpus))[0]
    for batch in batches_of(loader_of(corpus, with_characters=True, batch_size=1)):
        places = batch["left_to_right"][0]
        assert batch["characters"].size(1) == 12
        for place in places[batch["mask"][0]]:
            word = vocabulary().get_token_from_index(int(batch["words"][place]))
            if word != "@@UNKNOWN@@":
                assert batch["characters"][place].tolist() == character_ids(word, 12)


def test_each_distinct_word_comes_once(corpus: Path) -> None:
    vocab = vocabulary()
    for batch in batches_of(loader_of(corpus, with_characters=True)):
        words = batch["words"].tolist()
        assert all(words.count(vocab.get_token_index(word)) <= 1 for word in VOCABULARY)
        assert len(words) == len(batch["characters"])


def test_pages_are_given_back_with_each_batch(corpus: Path) -> None:
    loader = loader_of(corpus, batch_size=9, unroll_steps=2)
    num_windows = len(loader)
    with patch.object(PreparedCorpus, "release_pages", autospec=True) as release:
        batches_of(loader)
    # Of nine streams after the first eight, and after the last.
    assert release.call_count == 2 * num_windows


def test_only_the_first_batch_of_an_epoch_says_so(corpus: Path) -> None:
    loader = loader_of(corpus)
    for _ in range(2):
        batches = batches_of(loader)
        assert len(batches) == len(loader)
        assert [bool(batch["is_first"]) for batch in batches] == [
            number == 0 for number in range(len(batches))
        ]


def flat(batches: List[Dict[str, torch.Tensor]]) -> List[List[Any]]:
    return [[tensor.tolist() for tensor in batch.values()] for batch in batches]


@pytest.mark.parametrize("order", ["shuffle", "shuffle_sentences", "random_windows"])
def test_epochs_differ_and_a_seed_repeats_them(corpus: Path, order: str) -> None:
    (corpus / "3.txt").write_text("the end\n" * 5)
    first = loader_of(corpus, **{order: True}, unroll_steps=9)
    epochs = [flat(batches_of(first)) for _ in range(5)]
    assert any(epoch != epochs[0] for epoch in epochs[1:])
    again = loader_of(corpus, **{order: True}, unroll_steps=9)
    assert [flat(batches_of(again)) for _ in range(5)] == epochs
    other = loader_of(corpus, **{order: True}, unroll_steps=9, seed=1)
    assert [flat(batches_of(other)) for _ in range(5)] != epochs


@pytest.mark.parametrize("epochs, skipped", [(0, 0), (0, 2), (2, 0), (1, 1)])
@pytest.mark.parametrize("random_windows", [False, True])
def test_a_training_that_goes_on_gets_what_it_has_not_seen(
    corpus: Path, epochs: int, skipped: int, random_windows: bool
) -> None:
    settings: Dict[str, Any] = {"shuffle_sentences": True, "batch_size": 1, "unroll_steps": 7}
    whole = loader_of(corpus, random_windows=random_windows, **settings)
    expected = [flat(batches_of(whole)) for _ in range(3)]
    loader = loader_of(corpus, random_windows=random_windows, **settings)
    loader.skip(epochs, skipped)
    for number, epoch in enumerate(expected):
        batches = list(loader)
        empty = len(epoch) if number < epochs else skipped if number == epochs else 0
        assert len(batches) == len(epoch)
        assert batches[:empty] == [{}] * empty
        given = [batch["windows"] for batch in batches[empty:]]
        assert flat(given) == epoch[empty:]  # type: ignore[arg-type]


def test_windows_of_random_lengths_hold_the_same_text(corpus: Path) -> None:
    whole = batches_of(loader_of(corpus))
    loader, sizes = loader_of(corpus, unroll_steps=9, random_windows=True), set()
    for _ in range(5):
        num_windows = len(loader)
        batches = batches_of(loader)
        assert len(batches) == num_windows
        sizes |= {batch["mask"].size(1) for batch in batches}
        assert [int(batch["unroll_steps"]) for batch in batches] == [9] * num_windows
        for direction in ("left_to_right", "right_to_left"):
            for row in range(3):
                expected = read_words(whole, direction, row)
                assert read_words(batches, direction, row) == expected
                targets = [batch[f"{direction}_targets"][row] for batch in batches]
                own = [batch[f"{direction}_targets"][row] for batch in whole]
                read, known = torch.cat(targets), torch.cat(own)
                assert read[read > 0].tolist() == known[known > 0].tolist()
    assert len(sizes) > 2
    assert "unroll_steps" not in whole[0]


def test_lengths_are_drawn_as_in_the_paper() -> None:
    sizes = random_sizes(70, 10**6, numpy.random.default_rng(3))
    assert sizes[:-1].sum() < 10**6 <= sizes.sum()
    is_half = sizes < 52
    assert is_half.mean() == pytest.approx(0.05, abs=0.006)
    for some, mean in ((sizes[is_half], 35), (sizes[~is_half], 70)):
        assert some.mean() == pytest.approx(mean, abs=0.6)
        assert some.std() == pytest.approx(5, abs=0.5)
    # A longer text has the same lengths, and then more.
    more = random_sizes(70, 2 * 10**6, numpy.random.default_rng(3))
    assert more[: len(sizes)].tolist() == sizes.tolist()
    assert random_sizes(1, 50, numpy.random.default_rng(3)).min() == 1


def test_the_audit_counts_what_the_vocabulary_lacks(corpus: Path) -> None:
    words = [word for sentence in TEXT + OTHER_TEXT for word in sentence.split()]
    lacking = [word for word in words if word not in [*VOCABULARY, *MARKS]]
    assert 0 < len(lacking) < len(words)
    assert loader_of(corpus).audit.unknown_share == len(lacking) / len(words)


def test_a_loader_tells_its_text_from_its_way_of_reading(corpus: Path) -> None:
    loader = loader_of(corpus)
    others: List[Dict[str, Any]] = [
        {"batch_size": 2},
        {"unroll_steps": 3},
        {"shuffle": True},
        {"shuffle_sentences": True},
        {"seed": 1},
        {"random_windows": True},
    ]
    for settings in others:
        other = loader_of(corpus, **settings)
        assert other.identity == loader.identity
        assert other.way_of_reading != loader.way_of_reading
    assert loader_of(corpus).way_of_reading == loader.way_of_reading


def test_a_loader_reads_sentences_for_a_vocabulary(corpus: Path) -> None:
    vocab = Vocabulary.from_instances(loader_of(corpus).iter_instances())
    words = {word for sentence in TEXT + OTHER_TEXT for word in sentence.split()}
    assert words <= set(vocab.get_token_to_index_vocabulary())


def test_a_shard_may_be_empty_for_a_vocabulary_too(corpus: Path) -> None:
    (corpus / "0.txt").touch()
    loader = loader_of(corpus, skip_empty_shards=True)
    assert len(list(loader.iter_instances())) == len(TEXT + OTHER_TEXT)


def test_a_reader_that_does_not_fit_is_an_error(corpus: Path) -> None:
    message = "give the dataset reader `elmo_scratch_sentences` with it, not AgNews"
    with pytest.raises(ConfigurationError, match=message):
        StreamLoader(AgNewsReader(), str(corpus / "1.txt"), batch_size=1)


@pytest.mark.parametrize("settings", [{"unroll_steps": 20}, {"batch_size": 10, "unroll_steps": 1}])
def test_a_text_that_is_too_short_is_an_error(corpus: Path, settings: Dict[str, Any]) -> None:
    message = "9 sentences with 45 tokens and marks are too short"
    with pytest.raises(ConfigurationError, match=message):
        loader_of(corpus, **settings)


def test_sizes_below_one_are_an_error(corpus: Path) -> None:
    with pytest.raises(ConfigurationError, match="of at least 1, but got 0 and 20"):
        loader_of(corpus, batch_size=0, unroll_steps=20)


def test_a_seed_below_zero_is_an_error(corpus: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected a `seed` of 0 or more, but got -1"):
        loader_of(corpus, seed=-1)
