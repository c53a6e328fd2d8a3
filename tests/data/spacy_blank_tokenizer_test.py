import sys
from typing import List, Optional, Tuple

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data.tokenizers import Tokenizer

from elmo_scratch.data import SpacyBlankTokenizer


def words_and_places(language: str, text: str) -> List[Tuple[Optional[str], Optional[int]]]:
    return [(token.text, token.idx) for token in SpacyBlankTokenizer(language).tokenize(text)]


def test_english_is_split_by_its_own_rules_and_every_word_knows_its_place() -> None:
    assert words_and_places("en", "Don't stop (U.K.).") == [
        ("Do", 0),
        ("n't", 2),
        ("stop", 6),
        ("(", 11),
        ("U.K.", 12),
        (")", 16),
        (".", 17),
    ]


def test_white_space_never_becomes_a_token() -> None:
    assert words_and_places("en", " a \n\n  b\t") == [("a", 1), ("b", 7)]
    assert words_and_places("en", " \n ") == []
    assert words_and_places("en", "") == []


def test_each_language_has_its_rules() -> None:
    assert words_and_places("de", "z.B. so") == [("z.B.", 0), ("so", 5)]
    assert words_and_places("xx", "z.B. so") == [("z.", 0), ("B.", 2), ("so", 5)]
    assert words_and_places("en", "l'eau") == [("l'eau", 0)]


def test_a_config_finds_it_by_name() -> None:
    tokenizer = Tokenizer.from_params(Params({"type": "spacy_blank", "language": "it"}))
    assert isinstance(tokenizer, SpacyBlankTokenizer)
    assert [token.text for token in tokenizer.tokenize("l'acqua")] == ["l'", "acqua"]


def test_english_is_the_default() -> None:
    tokenizer = Tokenizer.from_params(Params({"type": "spacy_blank"}))
    assert [token.text for token in tokenizer.tokenize("it's")] == ["it", "'s"]


def test_words_that_a_config_asks_for_stand_around_each_text() -> None:
    tokenizer = Tokenizer.from_params(
        Params({"type": "spacy_blank", "start_tokens": ["<a>", "<b>"], "end_tokens": ["@@NULL@@"]})
    )
    expected = [("<a>", 0), ("<b>", 0), ("it", 0), ("'s", 2), ("@@NULL@@", -1)]
    for again in (tokenizer, Tokenizer.from_params(tokenizer.to_params())):
        assert [(token.text, token.idx) for token in again.tokenize("it's")] == expected


def test_a_language_that_spacy_lacks_is_an_error_that_gives_examples() -> None:
    with pytest.raises(ConfigurationError, match="language 'klingon'.* such as \"en\""):
        SpacyBlankTokenizer("klingon")


def test_a_language_whose_package_is_missing_is_an_error_that_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sudachipy", None)  # as if it were not installed
    with pytest.raises(ConfigurationError, match="language 'ja': .*pip install sudachipy"):
        SpacyBlankTokenizer("ja")


def test_it_tells_what_it_takes_to_build_it_again() -> None:
    again = Tokenizer.from_params(SpacyBlankTokenizer("de").to_params())
    assert [token.text for token in again.tokenize("z. B. so")] == ["z.", "B.", "so"]


def test_half_of_a_surrogate_pair_is_no_error_and_moves_nothing() -> None:
    assert words_and_places("en", "cut \ud83d here") == [("cut", 0), ("\ufffd", 4), ("here", 6)]
    assert words_and_places("en", "cut 😀 here") == [("cut", 0), ("😀", 4), ("here", 6)]
