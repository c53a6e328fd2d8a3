"""The reader that an archive's config names, built only if it does nothing but make ids."""

from copy import deepcopy
from os import PathLike
from typing import Any, Union

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader

from elmo_scratch_compat.strangers import IMPORTABLE, config_as_data

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
