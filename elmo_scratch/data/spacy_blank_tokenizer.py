"""Wraps spaCy's rule-based tokenizers, for any language, with nothing to download."""

import re
from typing import Any, Dict, List, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.data.tokenizers import Token, Tokenizer

SURROGATE = re.compile("[\ud800-\udfff]")


@Tokenizer.register("spacy_blank")
class SpacyBlankTokenizer(Tokenizer):
    """
    The tokenizer of `spacy.blank(language)`: rules only, no trained model. White space never
    becomes a token. Halves of surrogate pairs, which JSON may hold and spaCy refuses, count as
    U+FFFD.

    Registered as a `Tokenizer` with name "spacy_blank".

    # Parameters

    language : `str`, optional (default = `"en"`)
        A language code that spaCy knows, or `"xx"` for a tokenizer without language rules.
    start_tokens : `List[str]`, optional (default = none)
        These come before the tokens of each text, with 0 as their `idx`.
    end_tokens : `List[str]`, optional (default = none)
        These come behind the tokens of each text, with -1 as their `idx`: `decomposable_attention`
        expects `["@@NULL@@"]`.

    # Raises

    ConfigurationError
        If spaCy does not know the language, or a package that its tokenizer needs is missing.
    """

    def __init__(
        self,
        language: str = "en",
        *,
        start_tokens: Optional[List[str]] = None,
        end_tokens: Optional[List[str]] = None,
    ) -> None:
        self._language = language
        self._start_tokens = start_tokens or []
        self._end_tokens = end_tokens or []
        # It takes half a second, and configs name this tokenizer where it is used.
        import spacy

        try:
            self._tokenizer = spacy.blank(language).tokenizer
        except ImportError as error:
            reason = str(error).strip().splitlines()[0].rstrip(".")
            raise ConfigurationError(
                f"spaCy cannot build a tokenizer for the language {language!r}: {reason}. "
                'Expected a code such as "en", "de" or "xx" (any language).'
            ) from None

    def tokenize(self, text: str) -> List[Token]:
        """Splits any text. Each of its tokens has `idx`, the offset of its first character."""
        try:
            tokens = self._tokenizer(text)
        except UnicodeEncodeError:
            tokens = self._tokenizer(SURROGATE.sub("\ufffd", text))
        return [
            *(Token(text=word, idx=0) for word in self._start_tokens),
            *(Token(text=token.text, idx=token.idx) for token in tokens if not token.is_space),
            *(Token(text=word, idx=-1) for word in self._end_tokens),
        ]

    def _to_params(self) -> Dict[str, Any]:
        """The config that builds the tokenizer again."""
        params: Dict[str, Any] = {"type": "spacy_blank", "language": self._language}
        # Prepared corpora are known by it: it must not change for those that older code has made.
        if self._start_tokens:
            params["start_tokens"] = self._start_tokens
        if self._end_tokens:
            params["end_tokens"] = self._end_tokens
        return params
