"""Token encoders: from a token's ids to the vector that enters the LSTMs."""

from elmo_scratch.modules.token_encoders.char_cnn_encoder import CharCnnEncoder as CharCnnEncoder
from elmo_scratch.modules.token_encoders.char_cnn_encoder import CharWordEncoder as CharWordEncoder
from elmo_scratch.modules.token_encoders.spelled_word_encoder import (
    SpelledWordEncoder as SpelledWordEncoder,
)
from elmo_scratch.modules.token_encoders.token_encoder import EncodedTokens as EncodedTokens
from elmo_scratch.modules.token_encoders.token_encoder import TokenEncoder as TokenEncoder
from elmo_scratch.modules.token_encoders.token_encoder import WordEncoder as WordEncoder

__all__ = [
    "CharCnnEncoder",
    "CharWordEncoder",
    "EncodedTokens",
    "SpelledWordEncoder",
    "TokenEncoder",
    "WordEncoder",
]
