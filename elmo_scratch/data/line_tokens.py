"""The tokens of one line or text."""

from typing import List

from allennlp.data.tokenizers import Token, Tokenizer


def line_tokens(tokenizer: Tokenizer, text: str) -> List[Token]:
    """
    # Parameters

    tokenizer : `Tokenizer`
        Splits the text.
    text : `str`
        White space around it is no part of it, whatever the tokenizer makes of white space.

    # Returns

    `List[Token]`
        Those that hold something.
    """
    text = text.strip()
    return [token for token in tokenizer.tokenize(text) if token.text != ""] if text else []
