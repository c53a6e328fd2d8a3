import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.token_encoders import CharCnnEncoder, WordEncoder
from tests.modules.tiny_bilms import LetterEncoder

WORDS = torch.tensor([[2, 3], [4, 0]])
CHARACTERS = torch.ones(2, 2, 11, dtype=torch.long)
BOTH = {"words": {"tokens": WORDS}, "letters": {"elmo_tokens": CHARACTERS}}

OF_WORDS = WordEncoder(dim=3, num_words=7, begin_id=1, end_id=2)
OF_CHARACTERS = CharCnnEncoder(dim=3, filters=[(1, 4)], max_characters_per_token=11)


def test_an_encoder_gets_the_ids_it_reads() -> None:
    assert OF_WORDS.token_ids(BOTH) is WORDS
    assert OF_CHARACTERS.token_ids(BOTH) is CHARACTERS
    assert LetterEncoder(3).token_ids(BOTH) is CHARACTERS


def test_no_indexer_of_characters_is_an_error() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"reads the characters .*`elmo_scratch_characters` makes, but the indexers "
        r"\['words'\] make \['tokens'\]",
    ):
        OF_CHARACTERS.token_ids({"words": BOTH["words"]})


def test_no_indexer_of_words_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="reads ids of words.*`single_id` makes, but"):
        OF_WORDS.token_ids({"letters": BOTH["letters"]})


def test_ids_of_the_other_kind_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"but got ids of words, of the shape \(2, 2\)"):
        OF_CHARACTERS.check_token_ids(WORDS)
    with pytest.raises(ConfigurationError, match=r"but got ids of characters, of the shape \(2,"):
        OF_WORDS.check_token_ids(CHARACTERS)


def test_another_number_of_characters_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="`max_characters_per_token` to 11"):
        OF_CHARACTERS.check_token_ids(CHARACTERS[:, :, :9])
