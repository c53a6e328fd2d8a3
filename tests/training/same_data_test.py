from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance, Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader, SimpleDataLoader

from elmo_scratch.data import SentencesReader
from elmo_scratch.training.same_data import check_place, check_same_data, data_identity


class Loader:
    """One that knows its text."""

    def __init__(self, identity: str) -> None:
        self.identity = identity


def vocabulary(*words: str) -> Vocabulary:
    vocab = Vocabulary()
    for word in words:
        vocab.add_token_to_namespace(word)
    return vocab


def test_equal_data_are_the_same() -> None:
    one = data_identity(Loader("a"), vocabulary("x", "y"))
    check_same_data(one, data_identity(Loader("a"), vocabulary("x", "y")))
    # A checkpoint that knows less is not in the way.
    check_same_data({}, one)
    check_same_data(data_identity(None, vocabulary("x", "y")), one)


def test_another_text_is_told() -> None:
    one, other = (data_identity(Loader(text), vocabulary("x")) for text in "ab")
    with pytest.raises(ConfigurationError, match="its training text is not the one"):
        check_same_data(one, other)


def test_another_order_of_words_is_told() -> None:
    one = data_identity(None, vocabulary("x", "y"))
    other = data_identity(None, vocabulary("y", "x"))
    with pytest.raises(ConfigurationError, match="its vocabulary is not the one"):
        check_same_data(one, other)


def test_a_place_that_is_no_more_is_told() -> None:
    loader = SimpleDataLoader([Instance({})] * 3, 1)
    check_place(loader, 3)
    with pytest.raises(ConfigurationError, match="seen 4 batches of its epoch, which now has 3"):
        check_place(loader, 4)


def test_a_loader_that_does_not_know_its_length_is_believed(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a\nb\n")
    loader = MultiProcessDataLoader(
        SentencesReader(), str(tmp_path / "text.txt"), batch_size=1, max_instances_in_memory=1
    )
    check_place(loader, 99)
