"""
A component of spaCy's pipelines: `nlp.add_pipe("elmo_scratch", config={"model": ...})`.

spaCy finds it by an entry point of the installed package, or when this file is imported.
"""

import json
import os
import re
import shutil
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy
import srsly
from allennlp.common.checks import ConfigurationError
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, Token
from spacy.util import minibatch

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.files.atomic import atomic_write, atomic_writes
from elmo_scratch.integrations.vectors import (
    Model,
    check_choice,
    pooled,
    read_model,
    sentence_vectors,
)
from elmo_scratch.interop.zipped_models import OPTIONS_NAME, WEIGHTS_NAME

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
        """Another process reads the model itself, from bytes if its files are temporary."""
        new = partial(ElmoComponent, **self._settings)
        if self._folder is None:
            return new, (self.name, self._model)
        return _component_of_bytes, (new, self.name, self._model, self.to_bytes())

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


def _component_of_bytes(
    new: Callable[[str, Model], ElmoComponent], name: str, model: Model, data: bytes
) -> ElmoComponent:
    """Makes a component whose model comes as bytes."""
    return new(name, model).from_bytes(data)


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


POINTER = "model.json"
"""Says which folder beside it holds the copy; written last."""

FOLDER = "model"
"""The name that a model of several files has in its copy."""

_DIGEST = r"[0-9a-f]{16}"


def model_files(layers: SentenceLayers, model: Model) -> Dict[str, Path]:
    """
    Returns the files that `layers` was read from, each under its path within a copy. `model` is the
    name by which they were found.
    """
    paths = layers.files.paths
    if len(paths) == 1:
        return {paths[0].name: paths[0]}
    if isinstance(model, (list, tuple)):
        # They may lie in two folders, under any names.
        names = [OPTIONS_NAME, WEIGHTS_NAME]
    else:
        root = Path(os.path.commonpath(paths))
        names = [path.relative_to(root).as_posix() for path in paths]
    return {f"{FOLDER}/{name}": path for name, path in zip(names, paths)}


def write_copy(layers: SentenceLayers, model: Model, folder: Path) -> None:
    """
    Copies the files of a model into `folder`, which is made if it is missing. A copy that is there
    is replaced when the new one is whole. Raises `ConfigurationError` if the files have changed
    since they were read.
    """
    digest = layers.identity.removeprefix("sha256:")[:16]
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / digest).exists():
        files = model_files(layers, model)
        with atomic_writes(folder / digest, list(files)) as part:
            for name, path in files.items():
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, part / name)
    with atomic_write(folder / POINTER) as temporary:
        temporary.write_text(json.dumps({"copy": digest}), "utf-8")
    for older in folder.iterdir():
        if older.name != digest and re.fullmatch(_DIGEST, older.name):
            shutil.rmtree(older)


def find_copy(folder: Path) -> str:
    """
    Returns the name of the model whose copy `write_copy` put into `folder`. Raises
    `ConfigurationError` if there is none.
    """
    try:
        digest = json.loads((folder / POINTER).read_text("utf-8"))["copy"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        digest = ""
    if not (isinstance(digest, str) and re.fullmatch(_DIGEST, digest)):
        raise ConfigurationError(
            f"{folder}: expected the copy of a model, but there is no {POINTER} that names one. "
            "Save the pipeline again."
        )
    return _model_in(folder / digest)


def unpack_copy(files: Dict[str, bytes]) -> Tuple[str, TemporaryDirectory]:
    """
    Writes the files of a model, each under its path within a copy, into a temporary folder. Returns
    the model's name and the folder, which is removed when nothing refers to it. Raises
    `ConfigurationError` if they are not those of one model.
    """
    folder = TemporaryDirectory(prefix="elmo_scratch_")
    root = Path(folder.name).resolve()
    for name, content in files.items():
        path = (root / name).resolve()
        if root not in path.parents:
            raise ConfigurationError(f"expected the name of a file within a copy, but got {name!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return _model_in(root), folder


def _model_in(copy: Path) -> str:
    found = list(copy.iterdir()) if copy.is_dir() else []
    if len(found) != 1:
        raise ConfigurationError(
            f"{copy}: expected the copy of one model, but found {len(found)} files. Save the "
            "pipeline again."
        )
    return str(found[0])
