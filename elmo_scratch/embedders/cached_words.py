"""Words whose vectors are computed ahead, once for a whole vocabulary."""

from typing import Optional, Sequence

import torch

from elmo_scratch.alphabet import character_ids
from elmo_scratch.kernels.frozen_cache import FrozenProducts, are_frozen
from elmo_scratch.kernels.precision import precision_of
from elmo_scratch.modules.sequences import add_boundaries
from elmo_scratch.modules.token_encoders import CharCnnEncoder, EncodedTokens
from elmo_scratch.modules.token_encoders.token_encoder import check_id_type


class CachedWords(torch.nn.Module):
    """
    Looks words up that a vocabulary numbers, instead of encoding their characters.

    A look-up gives what encoding would: vectors are encoded anew if the encoder's weights have
    changed, and always while they are trained. A word that is not in the list is encoded from its
    characters.

    # Parameters

    words : `Sequence[str]`
        The words in the order of their ids. Id 0 stands for no word, whatever its name.
    encoder : `CharCnnEncoder`
        Encodes them. It is not a part of this module.
    """

    characters: torch.Tensor

    def __init__(self, words: Sequence[str], encoder: CharCnnEncoder) -> None:
        super().__init__()
        spelled = [
            character_ids(word, encoder.max_characters_per_token)
            # An empty list, too, has the id of no word.
            for word in list(words) or [""]
        ]
        self.register_buffer(
            # Workers of a distributed training can't send each other numbers of 16 bits.
            "characters",
            torch.tensor(spelled, dtype=torch.int32),
            persistent=False,
        )
        self._vectors = FrozenProducts[torch.Tensor]()
        if are_frozen(list(encoder.parameters())):
            self._table(encoder)

    def forward(
        self,
        words: torch.Tensor,
        characters: Optional[torch.Tensor],
        encoder: CharCnnEncoder,
    ) -> EncodedTokens:
        """
        # Parameters

        words : `torch.Tensor`
            Shape `(batch, tokens)`: ids of words, 0 where a sentence has ended.
        characters : `Optional[torch.Tensor]`
            Shape `(batch, tokens, characters)`. Where they are given they decide: a word whose
            characters are not those of its id in the list, an unknown one above all, is encoded
            from them; so is one with the id 0.
        encoder : `CharCnnEncoder`
            The encoder that the words were listed for.

        # Returns

        `EncodedTokens`
            Vectors of shape `(batch, tokens + 2, dim)`.

        # Raises

        ValueError
            If a word is not in the list and its characters are not given, or ids of words or of
            characters are none.
        """
        check_id_type(words, "words")
        is_listed = (words >= 0) & (words < len(self.characters))
        places = words.long().where(is_listed, 0)
        # As ids of characters, with those of the list where nothing else is known.
        listed = self.characters[places].long()
        if characters is None:
            given = torch.zeros_like(listed)
        elif characters.shape == listed.shape:
            # Beyond them another word's vector might pass for the right one.
            encoder.check_ids(characters)
            given = characters.long()
        else:
            raise ValueError(
                f"expected the ids of characters in the shape {tuple(listed.shape)}, as for the "
                f"ids of words, but got the shape {tuple(characters.shape)}"
            )
        is_given = (given != 0).any(dim=-1)
        mask = (words != 0) | is_given
        if bool((mask & ~is_listed & ~is_given).any()):
            raise ValueError(
                f"expected ids of words from 0 to {len(self.characters) - 1}, as in "
                f"`vocab_to_cache`, but got {words[mask & ~is_listed & ~is_given].tolist()}; give "
                "the ids of their characters as well"
            )
        spelled = torch.where(is_given.unsqueeze(-1), given, listed)
        if not are_frozen(list(encoder.parameters())):
            return encoder(spelled, mask)
        is_cached = mask & is_listed & (spelled == listed).all(dim=-1)
        table = self._table(encoder)
        vectors = table[places]  # (batch, tokens, dim)
        is_other = mask & ~is_cached
        if bool(is_other.any()):
            vectors[is_other] = encoder.encode_words(spelled[is_other])
        begin, end = encoder.encode_marks()
        bounded = add_boundaries(vectors, mask, begin, end)
        return EncodedTokens(bounded.ids, bounded.mask)

    def _table(self, encoder: CharCnnEncoder) -> torch.Tensor:
        """The vectors of all words, shape `(words, dim)`."""
        weights = list(encoder.parameters())

        def encode() -> torch.Tensor:
            with torch.no_grad():
                return encoder.encode_distinct(self.characters.long())

        return self._vectors.of(weights, precision_of(weights), encode)
