"""A biLM with all that it takes to read words with it."""

from os import PathLike
from typing import NamedTuple, Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders.sentences.character_speller import CharacterSpeller
from elmo_scratch.embedders.sentences.speller import Speller
from elmo_scratch.files.identity import ReadFiles
from elmo_scratch.interop.official.reading import read_official_bilm
from elmo_scratch.interop.official.weight_file import local_file
from elmo_scratch.modules.bilm import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder

Source = Union[str, PathLike]


class ReadableBiLm(NamedTuple):
    """
    # Parameters

    bilm : `BiLm`
        With its trained weights; its `state` says what a sentence starts from.
    speller : `Speller`
        Makes the ids that it reads.
    files : `ReadFiles`
        Where it came from.
    """

    bilm: BiLm
    speller: Speller
    files: ReadFiles

    @classmethod
    def from_official(cls, options_file: Source, weight_file: Source, state: str) -> "ReadableBiLm":
        """
        # Parameters

        options_file, weight_file : `Union[str, PathLike]`
            Paths or addresses of an `options.json` and a `weights.hdf5`.
        state : `str`
            As in `BiLm`.

        # Raises

        ConfigurationError
            If the files can't be read, or the biLM reads words: their file of words is not among
            the official files.
        """
        files = ReadFiles([local_file(options_file), local_file(weight_file)])
        bilm = read_official_bilm(options_file, weight_file, state=state)
        encoder = bilm.token_encoder
        if not isinstance(encoder, CharCnnEncoder):
            raise ConfigurationError(
                f"{options_file}: expected a biLM of characters (`char_cnn`), but it reads the "
                "numbers of words, and official files don't say which word has which number. Take "
                "the archive of its training (model.tar.gz) instead."
            )
        return cls(bilm, CharacterSpeller(encoder.max_characters_per_token), files)

    @classmethod
    def from_archive(cls, archive_file: Source, state: str) -> "ReadableBiLm":
        """
        # Parameters

        archive_file : `Union[str, PathLike]`
            The archive of a language model (a path or an address), or the output folder of its
            training.
        state : `str`
            As in `BiLm`. A biLM that was trained with the state `"warm"` is warm already.

        # Raises

        ConfigurationError
            If it can't be read.
        """
        # An archive's reader needs `allennlp.data`, which takes seconds to import. Whoever reads
        # official files doesn't wait for it.
        from elmo_scratch.embedders.sentences.archive_speller import archive_speller
        from elmo_scratch.interop.archives.archive import archive_files, read_bilm_archive

        files = ReadFiles(archive_files(archive_file))
        pretrained = read_bilm_archive(archive_file)
        pretrained.bilm.use_state(state)
        return cls(pretrained.bilm, archive_speller(pretrained), files)
