"""
ELMo where people already work: a component of spaCy's pipelines and a vectorizer of scikit-learn's.

Both read a biLM that is named by its files, start each sentence from zeros, and give the vectors
that `allennlp elmo` writes for the same words.
"""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from elmo_scratch.integrations.elmo_vectorizer import ElmoVectorizer as ElmoVectorizer
    from elmo_scratch.integrations.spacy_component import ElmoComponent as ElmoComponent
else:
    __getattr__, __dir__ = lazy_exports(
        __name__, {"ElmoComponent": "spacy_component", "ElmoVectorizer": "elmo_vectorizer"}
    )

__all__ = ["ElmoComponent", "ElmoVectorizer"]
