"""The sizes of the official biLMs of a task, kept in the task's own archive."""

import json
from os import PathLike
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Union

from elmo_scratch.interop.official.reading import build_bilm
from elmo_scratch.interop.official.writing import official_options
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import WordEncoder
from elmo_scratch.options import Options
from elmo_scratch.whole_file import whole_file

# AllenNLP archives the whole folder `vocabulary` and takes every file in it for a namespace, but
# for those whose names begin with a dot.
BLUEPRINT_NAME = ".elmo_scratch-official.json"


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
        path = Path(serialization_dir, "vocabulary", BLUEPRINT_NAME)
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = _read(path)
        kept[options_file] = {"options": self.options.to_json(), "num_words": self.num_words}
        with whole_file(path) as temporary:
            temporary.write_text(json.dumps(kept, indent=2), encoding="utf-8")

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
        path = Path(serialization_dir, "vocabulary", BLUEPRINT_NAME)
        plan = _read(path).get(options_file)
        if plan is None:
            return None
        return cls(Options.from_json(plan["options"], str(path)), plan["num_words"])


def _read(path: Path) -> Dict[str, Any]:
    """The plans that a file keeps, by their options files."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
