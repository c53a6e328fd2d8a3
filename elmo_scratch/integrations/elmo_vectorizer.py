"""A vectorizer of scikit-learn's: from texts to vectors of a biLM."""

from functools import lru_cache
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Union

import numpy
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from elmo_scratch.data.spelling import are_words
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.integrations.vectors import (
    Model,
    check_choice,
    chosen_layer,
    read_model,
    sentence_vectors,
)

LEVELS = ("sentence", "token")

Text = Union[str, Sequence[str]]
"""A text to split, or the words of one."""


class ElmoVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """
    Turns texts into vectors of one layer of a biLM. Nothing is learned of the texts: `fit` reads
    the model, so that `layer`, `pool`, `level` and `tokenizer` can be set afterwards too.

    A pickle holds the paths of the model and not its weights. Where it is loaded, the model is read
    when the first text comes.

    # Parameters

    model : `Model`
        The archive or output folder of a trained biLM, another model that `allennlp elmo` takes by
        one name, or the paths of an `options.json` and a `weights.hdf5`.
    layer : `Union[str, int]`, optional (default = `"mix"`)
        `"mix"`, the average of all layers; `"top"`; or the number of one, 0 for the token layer.
    pool : `str`, optional (default = `"mean"`)
        How the vectors of words make that of a text: their `"mean"` or their `"max"`.
    level : `str`, optional (default = `"sentence"`)
        One vector for each `"sentence"`, that is for each text, or for each `"token"`.
    tokenizer : `Callable[[str], Sequence[str]]`, optional (default = spaCy's rules for English)
        Splits a text into words; `str.split` does at white space, as `allennlp elmo` does. Texts
        that are lists of words are never split.
    cuda_device : `int`, optional (default = `-1`)
        The number of a GPU, or -1 for the processor.
    matmul_dtype : `str`, optional (default = `"float32"`)
        With `"bfloat16"`, matrix products run in bfloat16 where that is faster.
    """

    def __init__(
        self,
        model: Optional[Model] = None,
        *,
        layer: Union[str, int] = "mix",
        pool: str = "mean",
        level: str = "sentence",
        tokenizer: Optional[Callable[[str], Sequence[str]]] = None,
        cuda_device: int = -1,
        matmul_dtype: str = "float32",
    ) -> None:
        self.model = model
        self.layer = layer
        self.pool = pool
        self.level = level
        self.tokenizer = tokenizer
        self.cuda_device = cuda_device
        self.matmul_dtype = matmul_dtype

    def fit(self, X: Iterable[Text], y: Any = None) -> "ElmoVectorizer":
        """
        Reads the model. `X` and `y` are there for pipelines. Raises `ConfigurationError` if the
        model or the device can't be used, `ValueError` if another parameter is wrong.
        """
        self._check(X)
        layers = self._read_model()
        chosen_layer(self.layer, layers.num_layers)
        self._layers: Optional[SentenceLayers] = layers
        self._identity: Optional[str] = None
        self._n_features_out = layers.width
        return self

    def transform(self, X: Iterable[Text]) -> numpy.ndarray:
        """
        # Parameters

        X : `Iterable[Union[str, Sequence[str]]]`
            Texts, or the words of texts.

        # Returns

        `numpy.ndarray`
            Float32, shape `(texts, width)`, zeros for a text without words. With the level
            `"token"`, an array of objects of shape `(texts,)`: for each text float32, shape
            `(words, width)`. `numpy.concatenate` makes one of them.

        # Raises

        ValueError
            If `X` holds something else than texts, or a parameter is wrong.
        ConfigurationError
            If the model is gone or has changed since this vectorizer was pickled.
        """
        check_is_fitted(self)
        self._check(X)
        words = self._words_of(X)
        if self.level == "sentence":
            pooled = list(sentence_vectors(self._model(), words, self.layer, self.pool))
            return numpy.array(pooled, numpy.float32).reshape(-1, self._n_features_out)
        vectors = list(sentence_vectors(self._model(), words, self.layer))
        found = numpy.empty(len(vectors), dtype=object)
        # An assignment of the whole would make one array of vectors of equal lengths.
        for number, one in enumerate(vectors):
            found[number] = one
        return found

    def __getstate__(self) -> Dict[str, Any]:
        state = dict(super().__getstate__())
        layers = state.pop("_layers", None)
        if layers is not None:
            state["_identity"] = layers.identity
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_n_features_out")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags

    def _check(self, texts: Iterable[Text]) -> None:
        """Raises `ValueError` if `texts` is a single one or a table, or a parameter is wrong."""
        check_choice(self.layer, self.pool)
        if self.level not in LEVELS:
            levels = ", ".join(LEVELS)
            raise ValueError(f"expected `level` to be one of {levels}, but got {self.level!r}")
        if isinstance(texts, (str, bytes)):
            raise ValueError(f"expected a list of texts, but got the single text {texts!r}")
        shape = getattr(texts, "shape", (0,))
        if len(shape) != 1:
            raise ValueError(
                f"expected a list of texts, but got a table of the shape {shape}. Take one of its "
                "columns: `frame['text']`, `array[:, 0]`"
            )

    def _read_model(self) -> SentenceLayers:
        if self.model is None:
            raise ValueError("expected `model`: the path of an archive, or of official files")
        return read_model(self.model, cuda_device=self.cuda_device, matmul_dtype=self.matmul_dtype)

    def _model(self) -> SentenceLayers:
        """The model that was fitted, read anew where this was unpickled."""
        layers = getattr(self, "_layers", None)
        if layers is None:
            layers = self._read_model()
            if layers.identity != self._identity:
                raise ValueError(
                    f"{self.model}: expected the model that this vectorizer was fitted with, but "
                    "its files have changed. Bring them back, or fit anew."
                )
            self._layers = layers
        return layers

    def _words_of(self, texts: Iterable[Text]) -> Iterator[Sequence[str]]:
        """Yields the words of each text."""
        split = self.tokenizer
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                words: Any = text
                if not are_words(words):
                    raise ValueError(
                        f"expected text {number} to be a string or a sequence of words, but got "
                        f"{text!r}"
                    )
            else:
                split = split or _english_rules()
                words = split(text)
                if not are_words(words):
                    raise ValueError(
                        "expected `tokenizer` to return a sequence of words, but for text "
                        f"{number} it returned {words!r}"
                    )
            yield words


@lru_cache(maxsize=1)
def _english_rules() -> Callable[[str], List[str]]:
    # `allennlp.data` takes seconds to import, and texts that are split don't need it.
    from elmo_scratch.data.spacy_blank_tokenizer import SpacyBlankTokenizer

    tokenizer = SpacyBlankTokenizer()
    return lambda text: [token.ensure_text() for token in tokenizer.tokenize(text)]
