"""Stores the sizes of a task's official biLMs in the task's own archive."""

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
    The sizes that it takes to build a biLM of official files again. `num_words` counts the rows of
    its table of words; `None` if it reads characters.
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
        """Builds the biLM with fresh random weights."""
        return build_bilm(self.options, self.num_words, state=state, matmul_dtype=matmul_dtype)

    def write(self, serialization_dir: Union[str, PathLike], options_file: str) -> None:
        """
        Writes the blueprint to where AllenNLP packs it into the archive of the training.
        `options_file` names the file that the options came from, and `read` finds them by it.
        """
        kept = _kept(serialization_dir)
        kept[options_file] = {"options": self.options.to_json(), "num_words": self.num_words}
        keep_in_archive(serialization_dir, NAME, kept)

    @classmethod
    def read(
        cls, serialization_dir: Union[str, PathLike], options_file: str
    ) -> Optional["OfficialBlueprint"]:
        """
        Reads the blueprint that `write` stored in a training's folder, or in its unpacked archive;
        `None` if there is none.
        """
        plan = _kept(serialization_dir).get(options_file)
        if plan is None:
            return None
        path = archived_path(serialization_dir, NAME)
        return cls(Options.from_json(plan["options"], str(path)), plan["num_words"])


def _kept(serialization_dir: Union[str, PathLike]) -> Dict[str, Any]:
    """The stored plans by their options files."""
    return kept_in_archive(serialization_dir, NAME) or {}
