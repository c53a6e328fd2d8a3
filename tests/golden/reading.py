"""How golden files are read, by the script that writes them and by the test."""

import hashlib
from copy import deepcopy
from pathlib import Path
from typing import Any, Dict, List, Optional

import h5py
import numpy
from allennlp.common import Params
from allennlp.data import DataLoader, DatasetReader, Vocabulary
from allennlp.predictors import Predictor

from elmo_scratch import ElmoEmbedder

EPOCHS = 2
"""Each epoch of a stream has an order of its own."""


def words_of(text: Path) -> List[List[str]]:
    """The words of each line."""
    return [line.split() for line in text.read_text(encoding="utf-8").splitlines()]


def layers_of(
    text: Path, *, weight_file: Path, options_file: Optional[Path] = None
) -> numpy.ndarray:
    """
    The layers of a text, each sentence read from zeros: shape `(layers, tokens, width)`, with the
    tokens of all sentences in one row.
    """
    options = None if options_file is None else str(options_file)
    embedder = ElmoEmbedder(options, str(weight_file), state="reset")
    layers = embedder.embed_sentences(words_of(text))
    return numpy.concatenate(list(layers), axis=1)


def together(layer_file: Path) -> numpy.ndarray:
    """The layers in a file, as one array of shape `(layers, tokens, width)`."""
    with h5py.File(layer_file) as file:
        return numpy.concatenate([file[str(number)] for number in range(len(file) - 1)], axis=1)


def stream_loader(
    text: Path, tokenizer: Optional[Dict[str, Any]] = None, max_tokens: Optional[int] = None
) -> DataLoader:
    """A loader of streams over a text, which is prepared in the folder `ELMO_SCRATCH_CACHE`."""
    how = {"tokenizer": tokenizer, "max_tokens": max_tokens}
    reader = DatasetReader.from_params(
        Params(
            {
                "type": "elmo_scratch_sentences",
                "token_indexers": {
                    "tokens": {"type": "single_id"},
                    "characters": {"type": "elmo_scratch_characters"},
                },
                **deepcopy(how),
            }
        )
    )
    vocab = Vocabulary.from_params(
        Params({"type": "elmo_scratch_corpus", "data_path": str(text), **deepcopy(how)})
    )
    loader = DataLoader.from_params(
        Params(
            {
                "type": "elmo_scratch_stream",
                "batch_size": 3,
                "unroll_steps": 10,
                "shuffle_sentences": True,
            }
        ),
        reader=reader,
        data_path=str(text),
    )
    loader.index_with(vocab)
    return loader


def batch_digests(loader: DataLoader) -> Dict[str, str]:
    """A digest of all batches of `EPOCHS` epochs, by the name of the tensor."""
    digests: Dict[str, Any] = {}
    for _ in range(EPOCHS):
        for batch in loader:
            for name, tensor in batch["windows"].items():
                numbers = tensor.numpy().astype("<i8")
                digest = digests.setdefault(name, hashlib.sha256())
                digest.update(repr(numbers.shape).encode() + numbers.tobytes())
    return {name: digest.hexdigest() for name, digest in digests.items()}


def predictions(archive: Path, news: Path) -> List[Dict[str, float]]:
    """The probabilities of the classes, by their names, for each piece of news."""
    predictor = Predictor.from_path(str(archive), import_plugins=False)
    instances = predictor._dataset_reader.read(str(news))
    return [predictor.predict_instance(instance)["probabilities"] for instance in instances]


def checksums(folder: Path) -> List[str]:
    """A line for each file of a folder, as `sha256sum` writes it in the folder above."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [path.relative_to(folder.parent).as_posix() for path in files]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    return [f"{digest}  {name}" for digest, name in zip(digests, names)]
