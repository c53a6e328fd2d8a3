"""The archive that `allennlp train` makes of a language model, read back as a biLM."""

import os
import tarfile
import zlib
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import Iterator, NamedTuple, Union

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models.archival import CONFIG_NAME, extracted_archive, get_weights_path
from allennlp.nn.util import read_state_dict

from elmo_scratch.interop.bilm_blueprint import BiLmBlueprint
from elmo_scratch.interop.word_list import WordList
from elmo_scratch.modules import BiLm

LANGUAGE_MODEL = "elmo_scratch_bilm"
"""The registered name of the model whose archives are read here."""

BILM_PREFIX = "bilm."
"""Begins the names of the biLM's tensors among those of the language model."""


class PretrainedBiLm(NamedTuple):
    """
    A trained biLM and what came with it.

    # Parameters

    bilm : `BiLm`
        With its trained weights.
    blueprint : `BiLmBlueprint`
        To build it again.
    vocab : `Vocabulary`
        The vocabulary of the language model, which `reader`'s indexers use.
    reader : `DatasetReader`
        The reader of its training text.
    """

    bilm: BiLm
    blueprint: BiLmBlueprint
    vocab: Vocabulary
    reader: DatasetReader


def read_bilm_archive(archive_file: Union[str, PathLike]) -> PretrainedBiLm:
    """
    # Parameters

    archive_file : `Union[str, PathLike]`
        A `model.tar.gz` (a path or an address), or the output folder of a training.

    # Raises

    ConfigurationError
        If it is missing, is not an archive of the model "elmo_scratch_bilm", or its weights don't
        fit its config.
    """
    with _opened(archive_file) as folder:
        config = Params.from_file(str(folder / CONFIG_NAME))
        model = config.get("model", Params({}))
        kind = model.get("type")
        if kind != LANGUAGE_MODEL:
            raise ConfigurationError(
                f"{archive_file}: expected an archive of the model {LANGUAGE_MODEL!r}, but it "
                f"holds a {kind!r}. Pre-train a biLM with a config of training_config/bilm/."
            )
        vocab = Vocabulary.from_files(str(folder / "vocabulary"))
        words = WordList.from_vocabulary(vocab, model.get("namespace", "tokens"))
        blueprint = BiLmBlueprint(model.get("bilm").as_dict(quiet=True), words)
        bilm = blueprint.build()
        state = read_state_dict(get_weights_path(str(folder)))
        try:
            bilm.load_state_dict(
                {
                    name.removeprefix(BILM_PREFIX): tensor
                    for name, tensor in state.items()
                    if name.startswith(BILM_PREFIX)
                }
            )
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise ConfigurationError(
                f"{archive_file}: the weights do not fit the config. {reason}"
            ) from None
        reader = DatasetReader.from_params(config.get("dataset_reader"))
    return PretrainedBiLm(bilm, blueprint, vocab, reader)


@contextmanager
def _opened(archive_file: Union[str, PathLike]) -> Iterator[Path]:
    """The folder that holds the archive's files, for as long as the block runs."""
    try:
        path = cached_path(archive_file)
    except FileNotFoundError:
        raise ConfigurationError(f"{archive_file}: there is no such archive") from None
    with ExitStack() as unpacked:
        folder = path
        if not os.path.isdir(path):
            try:
                folder = unpacked.enter_context(extracted_archive(path))
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
