import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_scratch.training.exact_resume import check_same_data, check_shared_data, data_identity


class Loader:
    """One that knows its text, and how it reads that."""

    def __init__(self, identity: str, way_of_reading: str = "batch_size 4") -> None:
        self.identity = identity
        self.way_of_reading = way_of_reading


def vocabulary(*words: str) -> Vocabulary:
    vocab = Vocabulary()
    for word in words:
        vocab.add_token_to_namespace(word)
    return vocab


def test_equal_data_are_the_same() -> None:
    one = data_identity(Loader("a"), vocabulary("x", "y"))
    check_same_data(one, data_identity(Loader("a"), vocabulary("x", "y")))
    # A checkpoint that knows nothing of its data is not in the way.
    check_same_data({}, one)


def test_another_text_is_told() -> None:
    one, other = (data_identity(Loader(text), vocabulary("x")) for text in "ab")
    with pytest.raises(ConfigurationError, match="its training text is not the one"):
        check_same_data(one, other)


def test_another_order_of_words_is_told() -> None:
    one = data_identity(None, vocabulary("x", "y"))
    other = data_identity(None, vocabulary("y", "x"))
    with pytest.raises(ConfigurationError, match="its vocabulary is not the one"):
        check_same_data(one, other)


def test_another_way_of_reading_is_told_within_an_epoch() -> None:
    one, other = (data_identity(Loader("a", way), vocabulary("x")) for way in ("4 rows", "8 rows"))
    with pytest.raises(
        ConfigurationError, match=r"its way of reading .* \(4 rows, but now 8 rows\)"
    ):
        check_same_data(one, other)
    check_same_data(one, other, is_within_epoch=False)


def test_another_kind_of_loader_is_told_within_an_epoch() -> None:
    stream, ordinary = (data_identity(loader, vocabulary("x")) for loader in (Loader("a"), None))
    with pytest.raises(ConfigurationError, match=r"its training text .* \(a, but now not known\)"):
        check_same_data(stream, ordinary)
    with pytest.raises(ConfigurationError, match=r"its training text .* \(not known, but now a\)"):
        check_same_data(ordinary, stream)
    check_same_data(stream, ordinary, is_within_epoch=False)
    check_same_data(ordinary, stream, is_within_epoch=False)


def test_another_vocabulary_is_told_before_another_text() -> None:
    one, other = (data_identity(Loader(word), vocabulary(word)) for word in "ab")
    for is_within_epoch in (True, False):
        with pytest.raises(ConfigurationError, match="its vocabulary"):
            check_same_data(one, other, is_within_epoch)


def test_workers_with_other_data_than_the_first_are_told() -> None:
    one = data_identity(Loader("a"), vocabulary("x", "y"))
    check_shared_data([one])
    check_shared_data([one, dict(one)])
    others = {
        "training text": data_identity(Loader("b"), vocabulary("x", "y")),
        "vocabulary": data_identity(Loader("a"), vocabulary("y", "x")),
    }
    for what, other in others.items():
        with pytest.raises(
            ConfigurationError, match=f"the {what} of worker 2 is not that of worker 0"
        ):
            check_shared_data([one, one, other])
    with pytest.raises(ConfigurationError, match=r"training text .* \(not known, but there a\)"):
        check_shared_data([one, data_identity(None, vocabulary("x", "y"))])
