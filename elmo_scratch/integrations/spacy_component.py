"""
A component of spaCy's pipelines: `nlp.add_pipe("elmo_scratch", config={"model": ...})`.

spaCy finds it by an entry point of the installed package, or when this file is imported.
"""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy
import srsly
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, Token
from spacy.util import minibatch

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.integrations.model_copy import find_copy, model_files, unpack_copy, write_copy
from elmo_scratch.integrations.vectors import (
    Model,
    check_choice,
    pooled,
    read_model,
    sentence_vectors,
)

HasVector = Union[Doc, Span, Token]


class ElmoComponent(Pipe):
    """
    Sets `doc.tensor`, float32, shape `(tokens, width)`, to the vectors of the tokens in one layer
    of a biLM; and hooks by which `token.vector`, `span.vector`, `doc.vector` and `similarity` take
    them from there.

    Where sentence boundaries are set, by a parser or a sentencizer before it, each sentence is read
    by itself; otherwise the whole text is read as one. Tokens that are white space are not read:
    their vectors are zeros, and pooling leaves them out.

    The model is read when the first text comes. `to_disk` and `to_bytes` save its files too.

    Registered as a factory of spaCy with name "elmo_scratch".

    # Parameters

    name : `str`
        Its name in the pipeline.
    model : `Union[str, List[str]]`
        The archive or output folder of a trained biLM, another model that `allennlp elmo` takes by
        one name, or the paths of an `options.json` and a `weights.hdf5`.
    layer : `Union[str, int]`, optional (default = `"mix"`)
        `"mix"`, the average of all layers; `"top"`; or the number of one, 0 for the token layer.
    pool : `str`, optional (default = `"mean"`)
        How the vectors of tokens make that of a span or a text: their `"mean"` or their `"max"`.
    cuda_device : `int`, optional (default = `-1`)
        The number of a GPU, or -1 for the processor.
    matmul_dtype : `str`, optional (default = `"float32"`)
        With `"bfloat16"`, matrix products run in bfloat16 where that is faster.

    # Raises

    ValueError
        If there is no such layer, or no such pooling.
    ConfigurationError
        With the first text, if the model or the device can't be used.
    """

    def __init__(
        self,
        name: str,
        model: Union[str, List[str]],
        *,
        layer: Union[str, int] = "mix",
        pool: str = "mean",
        cuda_device: int = -1,
        matmul_dtype: str = "float32",
    ) -> None:
        check_choice(layer, pool)
        self.name = name
        self._settings: Dict[str, Any] = {
            "layer": layer,
            "pool": pool,
            "cuda_device": cuda_device,
            "matmul_dtype": matmul_dtype,
        }
        self._use(model)

    def __reduce__(self) -> Tuple[Any, ...]:
        """Another process reads the model itself."""
        return partial(ElmoComponent, **self._settings), (self.name, self._model)

    def _use(self, model: Model, folder: Optional[TemporaryDirectory] = None) -> None:
        """Takes another model; `folder`, if it is given, holds its files as long as it is used."""
        self._model, self._folder = model, folder
        self._read: Optional[SentenceLayers] = None

    @property
    def layers(self) -> SentenceLayers:
        """The biLM, read at the first use. Raises `ConfigurationError` if it can't be."""
        if self._read is None:
            devices = {key: self._settings[key] for key in ("cuda_device", "matmul_dtype")}
            self._read = read_model(self._model, **devices)
        return self._read

    def __call__(self, doc: Doc) -> Doc:
        """Sets the vectors of one text."""
        self._set_vectors([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """
        Sets the vectors of texts. Sentences of like lengths are read together, from `batch_size`
        texts at a time.
        """
        for docs in minibatch(stream, size=batch_size):
            try:
                self._set_vectors(docs)
                yield from docs
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)

    def _set_vectors(self, docs: List[Doc]) -> None:
        sentences = [(doc, _read_tokens(sentence)) for doc in docs for sentence in _sentences(doc)]
        words = [[token.text for token in tokens] for _, tokens in sentences]
        for doc in docs:
            doc.tensor = numpy.zeros((len(doc), self.layers.width), numpy.float32)
            _set_hooks(doc, self._settings["pool"])
        found = sentence_vectors(self.layers, words, self._settings["layer"])
        for (doc, tokens), vectors in zip(sentences, found):
            doc.tensor[[token.i for token in tokens]] = vectors

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Writes a copy of the model's files into the folder `path`."""
        write_copy(self.layers, self._model, Path(path))

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> "ElmoComponent":
        """Takes the copy that `to_disk` wrote, in place of the model of the configuration."""
        self._use(find_copy(Path(path)))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Returns the model's files as bytes."""
        files = model_files(self.layers, self._model)
        return srsly.msgpack_dumps({name: file.read_bytes() for name, file in files.items()})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "ElmoComponent":
        """Takes the model whose files `to_bytes` returned."""
        self._use(*unpack_copy(srsly.msgpack_loads(data)))
        return self


def _sentences(doc: Doc) -> Iterable[Union[Doc, Span]]:
    return doc.sents if doc.has_annotation("SENT_START") else [doc]


def _read_tokens(part: Union[Doc, Span]) -> List[Token]:
    return [token for token in part if not token.is_space]


def _set_hooks(doc: Doc, pool: str) -> None:
    """
    Lets a text, its spans and its tokens take their vectors from `doc.tensor`, also where the
    vocabulary has vectors of its own. Hooks know nothing of the biLM, so that texts can be pickled.
    """
    for hooks in (doc.user_hooks, doc.user_span_hooks):
        hooks["vector"] = partial(_pooled_vector, pool=pool)
    doc.user_token_hooks["vector"] = _token_vector
    for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        hooks["has_vector"] = _has_vector
        hooks["similarity"] = _cosine


def _token_vector(token: Token) -> numpy.ndarray:
    return token.doc.tensor[token.i]


def _pooled_vector(part: Union[Doc, Span], pool: str) -> numpy.ndarray:
    return pooled(part.doc.tensor[[token.i for token in _read_tokens(part)]], pool)


def _has_vector(part: HasVector) -> bool:
    return bool(part.vector.any())


def _cosine(one: HasVector, other: HasVector) -> float:
    """The cosine of two vectors, 0 if one is zero. Raises `ValueError` if their widths differ."""
    # What spaCy calls them is no array for type checkers.
    vectors: Tuple[Any, Any] = (one.vector, other.vector)
    if vectors[0].shape != vectors[1].shape:
        widths = " and ".join(str(len(vector)) for vector in vectors)
        raise ValueError(
            f"expected two vectors of one model, but they have {widths} numbers. Send both texts "
            "through the same pipeline."
        )
    norms = numpy.linalg.norm(vectors[0]) * numpy.linalg.norm(vectors[1])
    return float(vectors[0] @ vectors[1] / norms) if norms else 0.0


@Language.factory(
    "elmo_scratch",
    assigns=["doc.tensor"],
    default_config={
        "layer": "mix",
        "pool": "mean",
        "cuda_device": -1,
        "matmul_dtype": "float32",
    },
)
def make_elmo_component(
    nlp: Language,
    name: str,
    model: Union[str, List[str]],
    layer: Union[str, int],
    pool: str,
    cuda_device: int,
    matmul_dtype: str,
) -> ElmoComponent:
    """Makes the component, as spaCy's configurations name it. See `ElmoComponent`."""
    return ElmoComponent(
        name,
        model,
        layer=layer,
        pool=pool,
        cuda_device=cuda_device,
        matmul_dtype=matmul_dtype,
    )
