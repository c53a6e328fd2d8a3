import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.token_encoders import CharCnnEncoder, WordEncoder
from elmo_scratch.modules.token_encoders.token_ids import check_token_ids, token_ids
from tests.modules.tiny_bilms import LetterEncoder

WORDS = torch.tensor([[2, 3], [4, 0]])
CHARACTERS = torch.ones(2, 2, 11, dtype=torch.long)
BOTH = {"words": {"tokens": WORDS}, "letters": {"elmo_tokens": CHARACTERS}}

OF_WORDS = WordEncoder(dim=3, num_words=7, begin_id=1, end_id=2)
OF_CHARACTERS = CharCnnEncoder(dim=3, filters=[(1, 4)], max_characters_per_token=11)


def test_an_encoder_gets_the_ids_it_reads() -> None:
    assert token_ids(BOTH, OF_WORDS) is WORDS
    assert token_ids(BOTH, OF_CHARACTERS) is CHARACTERS
    assert token_ids(BOTH, LetterEncoder(3)) is CHARACTERS


def test_no_indexer_of_characters_is_an_error() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"reads the characters .*`elmo_scratch_characters` makes, but the indexers "
        r"\['words'\] make \['tokens'\]",
    ):
        token_ids({"words": BOTH["words"]}, OF_CHARACTERS)


def test_no_indexer_of_words_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="reads ids of words.*`single_id` makes, but"):
        token_ids({"letters": BOTH["letters"]}, OF_WORDS)


def test_ids_of_the_other_kind_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"but got ids of words, of the shape \(2, 2\)"):
        check_token_ids(WORDS, OF_CHARACTERS)
    with pytest.raises(ConfigurationError, match=r"but got ids of characters, of the shape \(2,"):
        check_token_ids(CHARACTERS, OF_WORDS)


def test_another_number_of_characters_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="`max_characters_per_token` to 11"):
        check_token_ids(CHARACTERS[:, :, :9], OF_CHARACTERS)
