"""Reads model folders, which may come from an untrusted source."""

from os import PathLike
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Union

import torch
from allennlp.common.checks import ConfigurationError
from safetensors import SafetensorError, safe_open

from elmo_scratch.data.spelling import CharacterWordIndexer, WordIndexer
from elmo_scratch.files.identity import ReadFiles
from elmo_scratch.files.strict_json import one_line
from elmo_scratch.interop.archives.blueprint import (
    NO_WORDS,
    BiLmBlueprint,
    ListedWordIndexer,
    WithoutDrawing,
)
from elmo_scratch.interop.archives.weights import (
    BILM_PREFIX,
    NO_MODULE,
    SOFTMAX_PREFIX,
    Tensors,
    load_weights,
    planned_bilm,
    reason_of,
)
from elmo_scratch.interop.folders.config import SOFTMAXES, FolderConfig, read_words
from elmo_scratch.interop.softmax import NO_SOFTMAX, LoadedMixes, LoadedSoftmax
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.mixes import TrainableMix
from elmo_scratch.modules.token_encoders import CharCnnEncoder

Source = Union[str, PathLike]

CONFIG_NAME, WEIGHTS_NAME = "config.json", "model.safetensors"
VOCABULARY_NAME, CARD_NAME = "vocab.txt", "README.md"

MODEL_FILES = (CONFIG_NAME, WEIGHTS_NAME, VOCABULARY_NAME)
"""The files that are read."""

MIXES_PREFIX = "mixes."
"""The prefix of the tensor names of an `Elmo`'s mixes."""

NAMES_OF_DTYPES = {torch.int64: "I64", torch.uint8: "U8", torch.bool: "BOOL"}
"""The names that safetensors has for the types of our tensors, those of weights left out."""

NAMES_OF_WEIGHTS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
"""The names that safetensors has for the types of `FolderConfig.dtype`."""


class FolderContents(NamedTuple):
    """
    What a model folder holds: the first fields of a `LoadedBiLm`, which is read of a model of any
    kind.
    """

    bilm: BiLm
    blueprint: BiLmBlueprint
    word_indexer: WordIndexer
    files: ReadFiles
    softmax: LoadedSoftmax = NO_SOFTMAX
    mixes: Optional[LoadedMixes] = None


def is_model_folder(path: Path) -> bool:
    """
    Whether a path is a folder to be read as a model folder: it holds `model.safetensors`, or its
    config is not that of a training.
    """
    if (path / WEIGHTS_NAME).exists():
        return True
    if (path / "vocabulary").is_dir():
        return False
    try:
        return b'"model_type"' in (path / CONFIG_NAME).read_bytes()[:4096]
    except OSError:
        return False


def read_model_folder(folder: Source, *, with_softmax: bool = False) -> FolderContents:
    """
    Reads a model folder.

    # Parameters

    folder : `Union[str, PathLike]`
        A folder that `write_bilm_folder` has written.
    with_softmax : `bool`, optional (default = `False`)
        Read the tensors of the softmax too, if there is one.

    # Raises

    ConfigurationError
        If it is a folder of another kind or version, or a file is missing or damaged, a tensor is
        missing, left over, of the wrong shape or type, or holds a number that is not finite.
    """
    folder = Path(folder)
    config = FolderConfig.read(folder / CONFIG_NAME)
    paths = [folder / CONFIG_NAME, folder / WEIGHTS_NAME]
    if config.vocabulary is not None:
        paths.append(folder / VOCABULARY_NAME)
    for path in paths:
        if not path.is_file():
            raise ConfigurationError(
                f"{path}: there is no such file, which a model folder must have. Copy or download "
                "the folder again."
            )
    files = ReadFiles(paths)
    words = NO_WORDS
    if config.vocabulary is not None:
        words = read_words(folder / VOCABULARY_NAME, config.vocabulary)
    blueprint = BiLmBlueprint(config.bilm, words)
    path = folder / WEIGHTS_NAME
    try:
        with safe_open(path, framework="pt") as file:
            parts = _planned_parts(config, blueprint, len(file.keys()), folder)
            _check(file, parts, config.dtype, path)
            bilm = blueprint.build_plain()
            load_weights(bilm, _tensors(file, parts, BILM_PREFIX), path)
            lowercase = config.vocabulary is not None and config.vocabulary.lowercase
            softmax, mixes = LoadedSoftmax(config.softmax, lowercase=lowercase), None
            if with_softmax and config.softmax is not None:
                tensors = _tensors(file, parts, SOFTMAX_PREFIX)
                softmax = softmax._replace(tensors=_finite(tensors, SOFTMAX_PREFIX, path))
            if config.elmo is not None:
                tensors = _tensors(file, parts, MIXES_PREFIX)
                mixes = LoadedMixes(config.elmo, _finite(tensors, MIXES_PREFIX, path))
    except (OSError, SafetensorError) as error:
        raise ConfigurationError(
            f"{path}: expected tensors in the format of safetensors, but they can't be read: "
            f"{reason_of(error)}. Copy or download the file again."
        ) from None
    encoder = bilm.token_encoder
    word_indexer: WordIndexer
    if isinstance(encoder, CharCnnEncoder):
        word_indexer = CharacterWordIndexer(encoder.max_characters_per_token)
    else:
        word_indexer = ListedWordIndexer(words, config.lowercase)
    return FolderContents(bilm.eval(), blueprint, word_indexer, files, softmax, mixes)


Parts = Dict[str, torch.nn.Module]
"""What the tensors belong to, of shapes alone, by the prefixes of their names."""


def _planned_parts(
    config: FolderConfig, blueprint: BiLmBlueprint, num_tensors: int, folder: Path
) -> Parts:
    """Builds what the config asks for, without memory for the numbers."""
    source = folder / CONFIG_NAME
    bilm = planned_bilm(blueprint.build_plain, config.bilm, num_tensors, source)
    parts: Parts = {BILM_PREFIX: bilm}
    if config.softmax is not None:
        cutoffs = config.softmax.get("cutoffs") or []
        try:
            if len(cutoffs) > num_tensors:
                raise ValueError(f"there are fewer tensors than `cutoffs`, {len(cutoffs)}")
            settings = {name: value for name, value in config.softmax.items() if name != "type"}
            with torch.device("meta"), WithoutDrawing():
                parts[SOFTMAX_PREFIX] = SOFTMAXES[config.softmax["type"]](
                    num_words=len(blueprint.words.words), dim=bilm.dim, **settings
                )
        except NO_MODULE as error:
            raise ConfigurationError(
                f"{source}: its block `softmax` describes none: {reason_of(error)}"
            ) from None
    if config.elmo is not None:
        count = config.elmo["num_output_representations"]
        if count > num_tensors:
            raise ConfigurationError(
                f"{source}: expected at most as many `num_output_representations` as there are "
                f"tensors, {num_tensors}, but got {count}"
            )
        mixes = (TrainableMix(bilm.num_layers) for _ in range(count))
        parts[MIXES_PREFIX] = torch.nn.ModuleList(mixes)
    return parts


def _check(file: Any, parts: Parts, dtype: str, path: Path) -> None:
    """
    Checks the names, shapes and types of tensors, before any is read. Weights are of type `dtype`.
    """
    expected = {
        f"{prefix}{name}": tensor
        for prefix, module in parts.items()
        for name, tensor in module.state_dict().items()
    }
    again = f"Do {CONFIG_NAME} and {WEIGHTS_NAME} come from the same model?"
    for name in sorted(set(file.keys()) - set(expected)):
        raise ConfigurationError(
            f"{path}: the tensor {one_line(name)} is left over: the config asks for none. {again}"
        )
    for name, tensor in expected.items():
        if name not in file.keys():
            raise ConfigurationError(f"{path}: the tensor {name} is missing. {again}")
        found = file.get_slice(name)
        shape = tuple(found.get_shape())
        stored = NAMES_OF_DTYPES.get(tensor.dtype, NAMES_OF_WEIGHTS[dtype])
        if shape != tuple(tensor.shape):
            raise ConfigurationError(
                f"{path}: expected the tensor {name} to have the shape {tuple(tensor.shape)}, but "
                f"it has the shape {shape}. {again}"
            )
        if found.get_dtype() != stored:
            raise ConfigurationError(
                f"{path}: expected the tensor {name} to be of the type {stored}, but it is of the "
                f"type {found.get_dtype()}. Convert it, or write the folder again."
            )


def _tensors(file: Any, parts: Parts, prefix: str) -> Tensors:
    """
    Reads the tensors of a part, by their names in it, weights in float32. Those that are stored so
    are parts of the file in memory.
    """
    return {
        name: file.get_tensor(f"{prefix}{name}").to(tensor.dtype)
        for name, tensor in parts[prefix].state_dict().items()
    }


def _finite(tensors: Tensors, prefix: str, path: Path) -> Tensors:
    """Returns copies of tensors, all of which must be finite."""
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ConfigurationError(
                f"{path}: {prefix}{name} holds numbers that are not finite; such weights come of a "
                "training that diverged"
            )
    return {name: tensor.clone() for name, tensor in tensors.items()}
