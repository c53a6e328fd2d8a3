"""The sizes of the official biLMs of a task, kept in the task's own archive."""

from os import PathLike
from typing import Any, Dict, NamedTuple, Optional, Union

from elmo_scratch.interop.archives.sidecar import archived_path, keep_in_archive, kept_in_archive
from elmo_scratch.interop.official.options import Options
from elmo_scratch.interop.official.reading import build_bilm
from elmo_scratch.interop.official.writing import official_options
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import WordEncoder

NAME = "-official"


class OfficialBlueprint(NamedTuple):
    """
    All it takes to build a biLM of official files again, but its weights.

    # Parameters

    options : `Options`
        Its sizes.
    num_words : `Optional[int]`
        Rows of its table of words, if it has one.
    """

    options: Options
    num_words: Optional[int]

    @classmethod
    def of(cls, bilm: BiLm) -> "OfficialBlueprint":
        """The blueprint of a biLM that was read from official files."""
        encoder = bilm.token_encoder
        num_words = None
        if isinstance(encoder, WordEncoder):
            num_words = encoder.embedding.num_embeddings - 1
        return cls(official_options(bilm), num_words)

    def build(self, *, state: str, matmul_dtype: str) -> BiLm:
        """A biLM of this plan with fresh random weights."""
        return build_bilm(self.options, self.num_words, state=state, matmul_dtype=matmul_dtype)

    def write(self, serialization_dir: Union[str, PathLike], options_file: str) -> None:
        """
        Puts the blueprint where AllenNLP packs it into the archive of the training.

        # Parameters

        serialization_dir : `Union[str, PathLike]`
            The output folder of a training.
        options_file : `str`
            The file that the options came from, by which they are found again.
        """
        kept = _kept(serialization_dir)
        kept[options_file] = {"options": self.options.to_json(), "num_words": self.num_words}
        keep_in_archive(serialization_dir, NAME, kept)

    @classmethod
    def read(
        cls, serialization_dir: Union[str, PathLike], options_file: str
    ) -> Optional["OfficialBlueprint"]:
        """
        # Parameters

        serialization_dir : `Union[str, PathLike]`
            The output folder of a training, or what was unpacked of its archive.
        options_file : `str`
            The file that the options came from.

        # Returns

        `Optional[OfficialBlueprint]`
            What `write` kept, if it did.
        """
        plan = _kept(serialization_dir).get(options_file)
        if plan is None:
            return None
        path = archived_path(serialization_dir, NAME)
        return cls(Options.from_json(plan["options"], str(path)), plan["num_words"])


def _kept(serialization_dir: Union[str, PathLike]) -> Dict[str, Any]:
    """The plans that are kept, by their options files."""
    return kept_in_archive(serialization_dir, NAME) or {}
