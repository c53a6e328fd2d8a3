"""
Reads a biLM, or a whole language model, from a trained archive. The reader that its config names is
built only if it does nothing but make ids.
"""

import os
import tarfile
import zlib
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Union

import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models.archival import CONFIG_NAME, extracted_archive, get_weights_path
from allennlp.nn.util import read_state_dict

from elmo_scratch.files.paths import resolve_path
from elmo_scratch.interop.archives.blueprint import BiLmBlueprint, BiLmChanges, WordList, dense
from elmo_scratch.interop.archives.sidecar import kept_bilm_config, kept_softmax_config
from elmo_scratch.interop.archives.weights import (
    BILM_PREFIX,
    LANGUAGE_MODEL,
    SOFTMAX_PREFIX,
    UNREADABLE,
    Source,
    Tensors,
    check_memory,
    check_not_compressed,
    check_plain,
    check_sizes,
    load_weights,
    part_of,
    reason_of,
)
from elmo_scratch.interop.softmax import DEFAULT_SOFTMAX
from elmo_scratch.modules import BiLm
from elmo_scratch.terminal import without_information
from elmo_scratch_compat.archives import config_in
from elmo_scratch_compat.parents import followed
from elmo_scratch_compat.strangers import IMPORTABLE, config_as_data, told_of


def fill_with_nan(bilm: BiLm) -> BiLm:
    """
    Sets all weights of a biLM to NaN, and returns it. If an archive lacks some, no vector passes
    for a right one.
    """
    with torch.no_grad():
        for weight in bilm.parameters():
            weight.fill_(float("nan"))
    return bilm


FROM_OFFICIAL, FROM_ARCHIVE = f"{LANGUAGE_MODEL}_from_official", f"{LANGUAGE_MODEL}_from_archive"
"""The registered names of the same model when its training starts from another biLM's weights."""

VOCABULARY_LOCK = ".lock"
"""An empty file that AllenNLP writes to whenever it reads a vocabulary."""


class PretrainedBiLm(NamedTuple):
    """
    A trained biLM and what came with it.

    # Parameters

    bilm : `BiLm`
        The biLM with its trained weights.
    blueprint : `BiLmBlueprint`
        Builds the biLM again.
    vocab : `Vocabulary`
        The vocabulary of the language model, which `reader`'s indexers use.
    reader : `DatasetReader`
        The reader of its training text.
    """

    bilm: BiLm
    blueprint: BiLmBlueprint
    vocab: Vocabulary
    reader: DatasetReader


class PretrainedLanguageModel(NamedTuple):
    """
    A trained biLM, the tensors of its softmax by their names in the softmax, and the config of its
    training.
    """

    pretrained: PretrainedBiLm
    softmax: Tensors
    config: Dict[str, Any]


def read_bilm_archive(archive_file: Source) -> PretrainedBiLm:
    """
    Reads a biLM with its vocabulary and reader from an archive of the model "elmo_scratch_bilm".

    # Parameters

    archive_file : `Union[str, PathLike]`
        A `model.tar.gz` (a path or an address), or the output folder of a training.

    # Raises

    ConfigurationError
        If it is missing, is not an archive of the model "elmo_scratch_bilm", or its weights can't
        be read, don't fit its config or are not finite.
    """
    return read_language_model(archive_file).pretrained


def read_language_model(archive_file: Source) -> PretrainedLanguageModel:
    """Reads a biLM and its softmax. The argument and the errors are as in `read_bilm_archive`."""
    with read_as_data(archive_file), opened_archive(archive_file) as folder:
        return language_model_in(folder, archive_file)


def archived_config(folder: Path, archive_file: Source) -> Dict[str, Any]:
    """
    Reads the config of an unpacked archive, which is data even where it lies in a training's output
    folder. Raises `ConfigurationError` if it is no plain JSON, or describes no model.
    """
    config = followed(config_in(folder, archive_file), folder)
    model = config.get("model") if isinstance(config, dict) else None
    if not isinstance(model, dict):
        raise ConfigurationError(
            f"{archive_file}: expected the block `model` of its {CONFIG_NAME} to be an object, but "
            f"got {model!r}"
        )
    return config


def is_language_model(config: Dict[str, Any]) -> bool:
    """Whether a config of `archived_config` is one of a language model of this package."""
    return config["model"].get("type") in (LANGUAGE_MODEL, FROM_OFFICIAL, FROM_ARCHIVE)


@without_information("allennlp.common.params", "allennlp.data.vocabulary")
def language_model_in(folder: Path, archive_file: Source) -> PretrainedLanguageModel:
    """
    Reads a biLM and its softmax from an unpacked archive; messages call it `archive_file`. The
    block `softmax` of the config that is returned names a kind, also where the archive's names none
    or is only a name. Raises `ConfigurationError` as `read_bilm_archive` does.
    """
    settings = archived_config(folder, archive_file)
    config = Params(deepcopy(settings))
    model = config.get("model")
    kind = model.get("type")
    if not is_language_model(settings):
        raise ConfigurationError(
            f"{archive_file}: expected an archive of the model {LANGUAGE_MODEL!r}, but it "
            f"holds a {kind!r}. Pre-train a biLM with a config of training_config/bilm/."
        )
    vocab = _read_vocabulary(config, folder, archive_file)
    words = WordList.from_vocabulary(vocab, model.get("namespace", "tokens"))
    softmax = settings["model"].get("softmax")
    if kind == LANGUAGE_MODEL:
        plan: Optional[Dict[str, Any]] = model.get("bilm", Params({})).as_dict(quiet=True)
    else:
        plan = kept_bilm_config(folder)
        softmax = softmax or kept_softmax_config(folder)
        if plan is not None:
            # The changes may differ from the first run's if the training was recovered.
            plan = BiLmChanges.from_params(model.get("bilm") or Params({})).of(plan)
    if not plan:
        raise ConfigurationError(f"{archive_file}: it holds no configuration of a biLM")
    # Sparse gradients suit the optimizer of that training; few others support them.
    blueprint = BiLmBlueprint(dense(plan), words)
    state = read_weights(folder, archive_file)
    weights = part_of(state, BILM_PREFIX)
    check_sizes(blueprint, weights, archive_file)
    bilm = blueprint.build()
    load_weights(bilm, weights, archive_file)
    reader = build_reader(settings.get("dataset_reader"), archive_file)
    pretrained = PretrainedBiLm(bilm, blueprint, vocab, reader)
    softmax = softmax or DEFAULT_SOFTMAX
    settings["model"]["softmax"] = softmax if isinstance(softmax, dict) else {"type": softmax}
    return PretrainedLanguageModel(pretrained, part_of(state, SOFTMAX_PREFIX), settings)


def archive_files(archive_file: Source) -> List[Path]:
    """
    Lists the files whose bytes make the language model what it is: the archive itself, or, in a
    training's output folder, the existing files that go into its archive. Raises
    `ConfigurationError` if there is no such archive or folder.
    """
    path = _found(archive_file)
    if not path.is_dir():
        return [path]
    files = [path / CONFIG_NAME, Path(get_weights_path(str(path)))]
    files += sorted((path / "vocabulary").glob("*"))
    return [file for file in files if file.exists() and file.name != VOCABULARY_LOCK]


def _read_vocabulary(config: Params, folder: Path, archive_file: Source) -> Vocabulary:
    """
    Reads the vocabulary like AllenNLP's model loading: the vocabulary's class knows its files.
    """
    settings = config.get("vocabulary", Params({}))
    kind = settings.get("type", Vocabulary.list_available()[0])
    try:
        vocabulary_class, _ = Vocabulary.resolve_class_name(kind)
        return vocabulary_class.from_files(
            str(folder / "vocabulary"), settings.get("padding_token"), settings.get("oov_token")
        )
    except (AssertionError, ConfigurationError) as error:
        # AllenNLP asserts that a vocabulary has the unknown word.
        reason = error.message if isinstance(error, ConfigurationError) else error
        raise ConfigurationError(
            f"{archive_file}: its vocabulary, of the type {kind!r}, can't be read. {reason}"
        ) from None


def read_weights(folder: Path, archive_file: Source) -> Tensors:
    """
    Reads the tensors of an unpacked archive by their names. Raises `ConfigurationError` if they
    can't be read, or would take far more memory than their file.
    """
    file = get_weights_path(str(folder))
    try:
        check_not_compressed(file)
        state = read_state_dict(file)
        check_plain(state)
        check_memory(state, file)
    except (AttributeError, *UNREADABLE) as error:
        raise ConfigurationError(
            f"{archive_file}: expected the weights of a model in {os.path.basename(file)}, but "
            f"they can't be read: {reason_of(error)}"
        ) from None
    return state


@contextmanager
def read_as_data(archive_file: Source) -> Iterator[None]:
    """
    In the block an archive, or a training's output folder, is data: its config has nothing
    imported, and whatever is wrong with it is a `ConfigurationError` with its name.
    """
    expected = "an archive made by `allennlp train` (model.tar.gz) of a biLM"
    with told_of(archive_file, expected), config_as_data():
        yield


@contextmanager
def opened_archive(archive_file: Source) -> Iterator[Path]:
    """
    Yields the folder that holds the archive's files, for the block. Raises `ConfigurationError` if
    there is no such archive, or it lacks a file.
    """
    path = _found(archive_file)
    with ExitStack() as unpacked:
        folder = str(path)
        if not path.is_dir():
            try:
                folder = unpacked.enter_context(extracted_archive(str(path)))
            except (EOFError, OSError, tarfile.TarError, zlib.error) as error:
                raise ConfigurationError(
                    f"{archive_file}: expected an archive made by `allennlp train` (model.tar.gz), "
                    f"but it can't be unpacked: {error}"
                ) from None
        for part in (CONFIG_NAME, "vocabulary", os.path.basename(get_weights_path(folder))):
            if not os.path.exists(os.path.join(folder, part)):
                raise ConfigurationError(
                    f"{archive_file}: it holds no {part}, so it is not the output of a training"
                )
        yield Path(folder)


def _found(archive_file: Source) -> Path:
    try:
        return resolve_path(archive_file)
    except FileNotFoundError:
        raise ConfigurationError(f"{archive_file}: there is no such archive") from None


HARMLESS = {
    "CharacterTokenizer",
    "ELMoTokenCharactersIndexer",
    "LettersDigitsTokenizer",
    "SingleIdTokenIndexer",
    "SpacyTokenIndexer",
    "SpacyTokenizer",
    "TokenCharactersIndexer",
    "WhitespaceTokenizer",
}
"""
AllenNLP's classes that reach no network and start no process. `SpacyTokenizer` is one because of
`elmo_scratch_compat.spacy_models`: it takes spaCy's models that are installed, and fetches none.
"""


class UntrustedReader(ConfigurationError):
    """A reader, or a part of one, that might do more than make ids."""


def build_reader(settings: Any, archive_file: Union[str, PathLike]) -> DatasetReader:
    """
    Builds a dataset reader by a config that somebody else may have written.

    # Parameters

    settings : `Any`
        The block `dataset_reader` of the config.
    archive_file : `Union[str, PathLike]`
        The name of the archive in errors.

    # Raises

    UntrustedReader
        If the config names a class that is neither this package's, nor one of `HARMLESS`, nor one
        that the user has imported, as by `--include-package`. Within
        `elmo_scratch_compat.strangers.trusted` any class will do.
    ConfigurationError
        If the reader can't be built otherwise.
    """

    def check(found: type) -> None:
        package = found.__module__.partition(".")[0]
        is_harmless = found.__name__ in HARMLESS and package == "allennlp"
        if package in IMPORTABLE and package != "elmo_scratch" and not is_harmless:
            raise UntrustedReader(
                f"{archive_file}: its `dataset_reader` has a {found.__name__}, which might fetch "
                "files or run programs. If you trust the archive, give `--trust`, or read it in a "
                "block of `elmo_scratch_compat.strangers.trusted`."
            )

    if not isinstance(settings, dict):
        raise ConfigurationError(
            f"{archive_file}: expected the block `dataset_reader` of its config to be an object, "
            f"but got {settings!r}"
        )
    with config_as_data(check=check):
        return DatasetReader.from_params(
            Params({"dataset_reader": deepcopy(settings)}).pop("dataset_reader")
        )
