import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_scratch.training.same_data import check_same_data, data_identity


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
