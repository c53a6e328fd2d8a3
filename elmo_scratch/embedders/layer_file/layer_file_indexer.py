"""Finds the texts of a task in a file of layers."""

from pathlib import Path
from typing import Any, Dict, List

from allennlp.data import Token, TokenIndexer, Vocabulary

from elmo_scratch.embedders.layer_file.token_layers import shared_token_numbers
from elmo_scratch.files.identity import stamp_of


@TokenIndexer.register("elmo_scratch_layer_file")
class LayerFileIndexer(TokenIndexer):
    """
    Gives each token the number that a file of layers has for it; files of different texts have
    different numbers. The tokens of a text, joined by spaces, must be a sentence of the file. No
    vocabulary is needed.

    Registered as a `TokenIndexer` with name "elmo_scratch_layer_file".

    # Parameters

    file : `str`
        The file, as `allennlp elmo` writes it.
    token_min_padding_length : `int`, optional (default = `0`)
        How many numbers each text is padded to at least.

    # Raises

    ConfigurationError
        If the file can't be read, has no vectors of tokens or no index of its sentences; later, if
        a text is not in it, or another file took its place.
    """

    def __init__(self, file: str, *, token_min_padding_length: int = 0) -> None:
        super().__init__(token_min_padding_length)
        self.file = file
        # Forked processes inherit the numbers and don't read the file again.
        shared_token_numbers(file)
        self._stamp = stamp_of(Path(file))

    def count_vocab_items(self, token: Token, counter: Dict[str, Dict[str, int]]) -> None:
        """Counts nothing."""

    def get_empty_token_list(self) -> Dict[str, List[Any]]:
        return {"token_numbers": []}

    def tokens_to_indices(
        self, tokens: List[Token], vocabulary: Vocabulary
    ) -> Dict[str, List[Any]]:
        """
        Returns `token_numbers`: one a token, above 0. Raises `ConfigurationError` if the file lacks
        the text, or another one took its place.
        """
        words = [token.ensure_text() for token in tokens]
        return {"token_numbers": list(shared_token_numbers(self.file, self._stamp).of(words))}
