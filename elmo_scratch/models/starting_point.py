"""Where a pre-training starts, if not from scratch: the weights of another biLM."""

from typing import Any, Dict, NamedTuple, Optional

from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.vocabulary_file import UNKNOWN_WORD, read_vocabulary_file
from elmo_scratch.interop.archives.archive import Tensors, read_language_model
from elmo_scratch.interop.archives.blueprint import WordList
from elmo_scratch.interop.official.options import bilm_config
from elmo_scratch.interop.official.reading import read_official_bilm, read_official_options
from elmo_scratch.modules.token_encoders import WordEncoder


class StartingPoint(NamedTuple):
    """
    What a training starts from.

    # Parameters

    config : `Dict[str, Any]`
        The configuration of the biLM.
    words : `WordList`
        In the order of the rows of its tables of words.
    bilm, softmax : `Dict[str, torch.Tensor]`
        The tensors of its parts. Official files have no softmax.
    """

    config: Dict[str, Any]
    words: WordList
    bilm: Tensors
    softmax: Tensors

    @classmethod
    def of_official(
        cls, options_file: str, weight_file: str, vocab_file: Optional[str]
    ) -> "StartingPoint":
        """
        # Parameters

        options_file, weight_file : `str`
            As in `read_official_bilm`.
        vocab_file : `Optional[str]`
            The words of a biLM of words, one a line, in the order of the rows of `embedding`.

        # Raises

        ConfigurationError
            If a file is not what it should be, or `vocab_file` is needed and missing.
        """
        bilm = read_official_bilm(options_file, weight_file)
        config = bilm_config(read_official_options(options_file))
        # A biLM of characters has no table of words, and one of no words fits all others.
        words = WordList(["", UNKNOWN_WORD], UNKNOWN_WORD)
        if isinstance(bilm.token_encoder, WordEncoder):
            if vocab_file is None:
                raise ConfigurationError(
                    f"{weight_file}: the biLM reads words, so it needs `vocab_file`, the words in "
                    "the order of the rows of `embedding`"
                )
            listed = read_vocabulary_file(vocab_file)
            if len(listed) + 1 != bilm.token_encoder.embedding.num_embeddings:
                raise ConfigurationError(
                    f"{vocab_file}: expected as many words as `embedding` in {weight_file} has "
                    f"rows, {bilm.token_encoder.embedding.num_embeddings - 1}, but it has "
                    f"{len(listed)}"
                )
            words = WordList(["", *listed], UNKNOWN_WORD)
        return cls(config, words, bilm.state_dict(), {})

    @classmethod
    def of_archive(cls, archive_file: str) -> "StartingPoint":
        """
        # Parameters

        archive_file : `str`
            As in `read_language_model`.

        # Raises

        ConfigurationError
            As `read_language_model` does.
        """
        (bilm, blueprint, _, _), softmax = read_language_model(archive_file)
        return cls(blueprint.config, blueprint.words, bilm.state_dict(), softmax)
