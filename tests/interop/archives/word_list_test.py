from pathlib import Path
from typing import List

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_scratch.interop import WordList

PADDING, UNKNOWN = "@@PADDING@@", "@@UNKNOWN@@"


def vocabulary_of(words: List[str], namespace: str = "tokens") -> Vocabulary:
    return Vocabulary(tokens_to_add={namespace: words})


@pytest.fixture
def words() -> WordList:
    return WordList([PADDING, UNKNOWN, "river", "bank", "<S>", "</S>", "naïve"], UNKNOWN)


def test_words_stand_in_the_order_of_their_ids() -> None:
    words = WordList.from_vocabulary(vocabulary_of(["river", "bank"]), "tokens")
    assert words.words == [PADDING, UNKNOWN, "river", "bank", "<S>", "</S>"]
    assert words.unknown_word == UNKNOWN


def test_boundary_marks_join_the_vocabulary_that_lacks_them() -> None:
    vocab = vocabulary_of(["river"])
    WordList.from_vocabulary(vocab, "tokens")
    assert vocab.get_token_index("<S>") == 3
    assert vocab.get_token_index("</S>") == 4


def test_boundary_marks_that_the_vocabulary_has_keep_their_places() -> None:
    words = WordList.from_vocabulary(vocabulary_of(["</S>", "river", "<S>"]), "tokens")
    assert words.words == [PADDING, UNKNOWN, "</S>", "river", "<S>"]
    assert words.sizes() == {"num_words": 5, "begin_id": 4, "end_id": 2}


def test_the_namespace_is_the_one_asked_for() -> None:
    vocab = vocabulary_of(["river"], namespace="cased")
    assert WordList.from_vocabulary(vocab, "cased").words[2] == "river"
    assert vocab.get_vocab_size("tokens") == 2


def test_sizes_are_those_the_network_asks_for(words: WordList) -> None:
    assert words.sizes() == {"num_words": 7, "begin_id": 4, "end_id": 5}


def test_ids_of_another_vocabulary_are_translated(words: WordList) -> None:
    # Its ids: 0 padding, 1 unknown, then the four words.
    table = words.ids_from(vocabulary_of(["bank", "shore", "naïve", "river"]), "tokens")
    assert table.tolist() == [0, 1, 3, 1, 6, 2]


def test_a_vocabulary_with_an_unknown_word_of_its_own_finds_the_lists(words: WordList) -> None:
    vocab = Vocabulary(tokens_to_add={"tokens": ["bank"]}, oov_token="<UNK>")
    assert words.ids_from(vocab, "tokens").tolist() == [0, 1, 3]


def test_words_of_the_list_are_counted(words: WordList) -> None:
    vocab = vocabulary_of(["bank", "shore", "river"])
    assert words.count_known(vocab, "tokens") == 4  # padding and unknown too


def test_a_vocabulary_on_disk_gives_the_same_list(tmp_path: Path) -> None:
    vocab = vocabulary_of(["rivière", "a\nb", "bank\u2028", " "])
    before = WordList.from_vocabulary(vocab, "tokens")
    vocab.save_to_files(str(tmp_path / "vocabulary"))
    after = WordList.from_vocabulary(Vocabulary.from_files(tmp_path / "vocabulary"), "tokens")
    assert after.words == before.words
    assert after.sizes() == before.sizes()


def test_another_vocabularys_unknown_word_is_the_lists() -> None:
    vocab = Vocabulary(tokens_to_add={"tokens": ["river"]}, oov_token="<UNK>")
    words = WordList.from_vocabulary(vocab, "tokens")
    assert words.words == [PADDING, "<UNK>", "river", "<S>", "</S>"]
    assert words.unknown_word == "<UNK>"
    assert words.unknown_id == 1


def test_a_namespace_without_an_unknown_word_is_an_error() -> None:
    vocab = Vocabulary(tokens_to_add={"tokens": ["river"]}, non_padded_namespaces=["tokens"])
    with pytest.raises(ConfigurationError, match="'@@UNKNOWN@@', .* 'tokens', but it is missing"):
        WordList.from_vocabulary(vocab, "tokens")


def test_words_are_found_in_another_list_by_their_spelling(words: WordList) -> None:
    other = WordList(["", "<S>", "</S>", "<UNK>", "naïve", "shore", "bank"], "<UNK>")
    #                        padding, unknown, river, bank, <S>, </S>, naïve
    assert words.ids_in(other).tolist() == [0, 3, -1, 6, 1, 2, 4]
    assert other.ids_in(words).tolist() == [0, 4, 5, 1, 6, -1, 3]
