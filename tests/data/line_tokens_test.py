from allennlp.data.tokenizers import CharacterTokenizer, Token, Tokenizer, WhitespaceTokenizer

from elmo_scratch.data.lines import line_tokens


class Parts(Tokenizer):
    def tokenize(self, text: str) -> list:
        return [Token(part) for part in text.split(",")]


def test_white_space_around_a_line_is_no_part_of_it() -> None:
    found = line_tokens(CharacterTokenizer(), "\u3000 学 而\r\n")
    assert [token.text for token in found] == ["学", " ", "而"]
    assert line_tokens(CharacterTokenizer(), " \t\n") == []
    assert line_tokens(WhitespaceTokenizer(), "") == []


def test_a_token_holds_something() -> None:
    assert [token.text for token in line_tokens(Parts(), "a,,b,")] == ["a", "b"]


def test_a_token_may_be_a_number_alone() -> None:
    class Numbers(Tokenizer):
        def tokenize(self, text: str) -> list:
            return [Token(text_id=int(part)) for part in text.split()]

    assert [token.text_id for token in line_tokens(Numbers(), "3 5\n")] == [3, 5]
