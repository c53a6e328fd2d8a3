"""
Texts to static vectors: one vector a word, whatever the sentence.

The room promises that a text is read in pieces, never as a whole, and that the same text, settings
and seed give the same vectors.
"""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from elmo_scratch.static_vectors.method import NumberedText as NumberedText
    from elmo_scratch.static_vectors.method import VectorMethod as VectorMethod
    from elmo_scratch.static_vectors.method import VectorText as VectorText
    from elmo_scratch.static_vectors.ppmi_svd import PpmiSvd as PpmiSvd
    from elmo_scratch.static_vectors.word2vec import Word2Vec as Word2Vec
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "NumberedText": "method",
            "PpmiSvd": "ppmi_svd",
            "VectorMethod": "method",
            "VectorText": "method",
            "Word2Vec": "word2vec",
        },
    )

__all__ = ["NumberedText", "PpmiSvd", "VectorMethod", "VectorText", "Word2Vec"]
