"""
The sizes of an official biLM: in `options.json`, in a config, in a `BiLm`, in a task's archive.
"""

import json
import logging
from dataclasses import dataclass
from os import PathLike
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import CHARACTERS_PER_TOKEN, NUM_BATCH_IDS, NUM_CHARACTERS
from elmo_scratch.files.strict_json import StrictJson
from elmo_scratch.interop.archives.sidecar import (
    archived_path,
    keep_in_archive,
    kept_in_archive,
    reading_kept,
)
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder, TokenEncoder, WordEncoder
from elmo_scratch_compat.bounds import OPTIONS_NUMBER, OPTIONS_SIZE

logger = logging.getLogger(__name__)

TRAINING_KEYS = {
    "all_clip_norm_val",
    "batch_size",
    "dropout",
    "learning_rate",
    "n_epochs",
    "n_negative_samples_batch",
    "n_tokens_vocab",
    "n_train_tokens",
    "sample_softmax",
    "share_embedding_softmax",
    "unroll_steps",
}
"""
Keys that the trainer of `bilm-tf` writes beside the network's sizes. They have no effect here.
"""

BLOCKS = {
    "lstm": ("cell_clip", "dim", "n_layers", "proj_clip", "projection_dim", "use_skip_connections"),
    "char_cnn": (
        "activation",
        "embedding",
        "filters",
        "max_characters_per_token",
        "n_characters",
        "n_highway",
    ),
}
"""The blocks of the network and their keys."""

SAID = {
    "bidirectional": True,
    "do_layer_norm": False,
    "projection_after_highway": True,
    "reverse": False,
    "use_peepholes": False,
}
"""
What some trainers say of the network, in a block or beside it, and what is true of each that the
official code runs.
"""

MARK_IDS = (1, 2)
"""
The ids of the words that mark sentence boundaries, one more than their rows in `embedding`: a
vocabulary file of `bilm-tf` begins with `<S>`, `</S>` and `<UNK>`.
"""


@dataclass(frozen=True)
class LstmOptions:
    """
    The block `lstm`: `dim` memory cells a layer, `projection_dim` outputs of each direction,
    `n_layers` layers of each direction, bounds of cells and of projected outputs, and whether a
    layer's input is added to its output, from the second layer on.
    """

    dim: int
    projection_dim: int
    n_layers: int
    cell_clip: Optional[float]
    proj_clip: Optional[float]
    use_skip_connections: bool


@dataclass(frozen=True)
class CharCnnOptions:
    """
    The block `char_cnn`.

    `embedding_dim` is the size of a character's vector, `{"embedding": {"dim": ...}}` in the file.
    `filters` pairs a width with the number of filters of that width. `activation` is `"relu"` or
    `"tanh"`. `max_characters_per_token` counts the ids of a word.
    """

    embedding_dim: int
    filters: Tuple[Tuple[int, int], ...]
    n_highway: int
    activation: str
    max_characters_per_token: int


@dataclass(frozen=True)
class Options:
    """
    The content of an `options.json`. `char_cnn` is `None` if the model has a table of words
    instead.
    """

    lstm: LstmOptions
    char_cnn: Optional[CharCnnOptions]

    @classmethod
    def from_json(cls, text: Union[str, bytes], source: str) -> "Options":
        """
        Parses the content of an `options.json`; error messages call the file `source`. Raises
        `ConfigurationError` if it is not JSON, a key is missing, unknown or in the wrong block, or
        a value makes no sense.
        """
        if len(text) > OPTIONS_SIZE:
            raise ConfigurationError(
                f"{source}: expected the options of a biLM, but it has more than {OPTIONS_SIZE} "
                "bytes"
            )
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(
                f"{source}: expected the options of a biLM as JSON, but it can't be read: {error}"
            ) from None
        top = StrictJson(source, "", record)
        lstm = top.block("lstm")
        _check_said(top)
        _check_said(lstm)
        options = cls(
            LstmOptions(
                dim=lstm.size("dim"),
                projection_dim=lstm.size("projection_dim"),
                n_layers=lstm.size("n_layers", default=1),
                cell_clip=lstm.clip("cell_clip"),
                proj_clip=lstm.clip("proj_clip"),
                use_skip_connections=lstm.flag("use_skip_connections"),
            ),
            # Null stands for none where a trainer writes all keys.
            None if top.take("char_cnn", None) is None else _char_cnn(top.block("char_cnn"), lstm),
        )
        lstm.finish()
        unread = top.unread()
        for block, keys in BLOCKS.items():
            for key in sorted(unread.intersection(keys)):
                raise ConfigurationError(
                    f"{source}: expected the key `{key}` within `{block}`, but it stands beside it"
                )
        for key in sorted(unread - TRAINING_KEYS):
            logger.warning("%s: the key %r is unknown and has no effect", source, key)
        if options.lstm.projection_dim > options.lstm.dim:
            raise ConfigurationError(
                f"{source}: expected `projection_dim` of `lstm` to be at most its `dim`, "
                f"{options.lstm.dim}, but got {options.lstm.projection_dim}"
            )
        return options

    def to_json(self) -> str:
        """The text of a file that `from_json` reads back, in the released models' form."""
        lstm: Dict[str, Any] = {
            "use_skip_connections": self.lstm.use_skip_connections,
            "projection_dim": self.lstm.projection_dim,
            "cell_clip": self.lstm.cell_clip,
            "proj_clip": self.lstm.proj_clip,
            "dim": self.lstm.dim,
            "n_layers": self.lstm.n_layers,
        }
        record: Dict[str, Any] = {"lstm": lstm}
        if self.char_cnn is not None:
            record["char_cnn"] = {
                "activation": self.char_cnn.activation,
                "filters": [list(pair) for pair in self.char_cnn.filters],
                "n_highway": self.char_cnn.n_highway,
                "embedding": {"dim": self.char_cnn.embedding_dim},
                "n_characters": NUM_BATCH_IDS,
                "max_characters_per_token": self.char_cnn.max_characters_per_token,
            }
        return json.dumps(record, indent=2) + "\n"

    def to_config(self) -> Dict[str, Any]:
        """The equivalent `bilm` block of a language model's config."""
        lstm, cnn = self.lstm, self.char_cnn
        token_encoder: Dict[str, Any] = {"type": "word", "dim": lstm.projection_dim}
        if cnn is not None:
            token_encoder = {
                "type": "char_cnn",
                "dim": lstm.projection_dim,
                "filters": [list(pair) for pair in cnn.filters],
                "character_dim": cnn.embedding_dim,
                "num_highway": cnn.n_highway,
                "activation": cnn.activation,
                "max_characters_per_token": cnn.max_characters_per_token,
            }
        return {
            "token_encoder": token_encoder,
            "cell_size": lstm.dim,
            "num_layers": lstm.n_layers,
            "cell_clip": lstm.cell_clip,
            "projection_clip": lstm.proj_clip,
            "use_skip_connections": lstm.use_skip_connections,
        }

    @classmethod
    def of(cls, bilm: BiLm) -> "Options":
        """
        The options of a biLM with the token encoder `char_cnn` or `word`. Raises `ValueError` if it
        has no official form.
        """
        encoder = bilm.token_encoder
        cnn: Optional[CharCnnOptions] = None
        if isinstance(encoder, CharCnnEncoder):
            cnn = CharCnnOptions(
                embedding_dim=encoder.convolution.embedding.embedding_dim,
                filters=encoder.convolution.filters,
                n_highway=len(encoder.highways),
                activation=encoder.convolution.activation,
                max_characters_per_token=encoder.max_characters_per_token,
            )
        elif not isinstance(encoder, WordEncoder):
            raise ValueError(
                "expected the token encoder `char_cnn` or `word`, for which there is an official "
                f"form, but got {type(encoder).__name__}"
            )
        elif encoder.mark_ids() != MARK_IDS:
            raise ValueError(
                "expected the words for the beginning and the end of a sentence to have the ids "
                f"{MARK_IDS}, the first two rows of `embedding`, but they have {encoder.mark_ids()}"
            )
        stack = bilm.left_to_right
        proj_clip = stack.projection_clip
        # Without a projection there is no clip, and outputs are below 1; AllenNLP clips them.
        if stack.cell_size == bilm.dim and proj_clip is not None and proj_clip < 1.0:
            proj_clip = None
        lstm = LstmOptions(
            dim=stack.cell_size,
            projection_dim=bilm.dim,
            n_layers=bilm.num_layers - 1,
            cell_clip=stack.cell_clip,
            proj_clip=proj_clip,
            # Skip connections need a second layer; AllenNLP accepts only `true`.
            use_skip_connections=stack.use_skip_connections or bilm.num_layers == 2,
        )
        try:
            return cls.from_json(cls(lstm, cnn).to_json(), "the biLM")
        except ConfigurationError as error:
            raise ValueError(f"there is no official form of this biLM. {error}") from None


def _check_said(block: StrictJson) -> None:
    """Raises `ConfigurationError` if a block says another thing than `SAID` of the network."""
    for key, value in SAID.items():
        if key in block and (found := block.take(key)) is not value:
            raise block.error(key, f"{json.dumps(value)}, as of every biLM of this form", found)


def _char_cnn(block: StrictJson, lstm: StrictJson) -> CharCnnOptions:
    _check_said(block)
    if "projection" in block:
        # The characters' vectors are projected to the size of the LSTM's.
        projection, expected_dim = block.block("projection"), lstm.take("projection_dim")
        if projection.size("dim") != expected_dim:
            raise projection.error(
                "dim", f"{expected_dim}, `projection_dim` of `lstm`", projection.size("dim")
            )
        projection.finish()
    n_characters = block.size("n_characters", default=NUM_BATCH_IDS)
    if n_characters not in (NUM_CHARACTERS, NUM_BATCH_IDS):
        raise block.error(
            "n_characters",
            f"{NUM_CHARACTERS} (written by a training) or {NUM_BATCH_IDS} (of a released model)",
            n_characters,
        )
    max_characters = block.size("max_characters_per_token")
    if max_characters not in CHARACTERS_PER_TOKEN:
        least, most = CHARACTERS_PER_TOKEN[0], CHARACTERS_PER_TOKEN[-1]
        raise block.error("max_characters_per_token", f"from {least} to {most}", max_characters)
    activation = block.take("activation")
    if activation not in ("relu", "tanh"):
        raise block.error("activation", '"relu" or "tanh"', activation)
    filters = block.take("filters")
    expected = f"pairs of a width from 1 to {max_characters} and a number of filters"
    if not isinstance(filters, list) or not filters:
        raise block.error("filters", expected, filters)
    for pair in filters:
        is_pair = isinstance(pair, list) and [type(part) for part in pair] == [int, int]
        if not is_pair or not 1 <= pair[0] <= max_characters or not 1 <= pair[1] <= OPTIONS_NUMBER:
            raise block.error("filters", expected, pair)
    embedding = block.block("embedding")
    options = CharCnnOptions(
        embedding_dim=embedding.size("dim"),
        filters=tuple((width, number) for width, number in filters),
        n_highway=block.size("n_highway", default=0, least=0),
        activation=activation,
        max_characters_per_token=max_characters,
    )
    embedding.finish()
    block.finish()
    return options


def build_bilm(
    options: Options, num_words: Optional[int], *, state: str, matmul_dtype: str
) -> BiLm:
    """
    Builds a biLM with fresh random weights.

    # Parameters

    options : `Options`
        The sizes of the biLM.
    num_words : `Optional[int]`
        Rows of the table of words, for a model of words.
    state, matmul_dtype : `str`
        See `BiLm`.
    """
    config = options.to_config()
    settings = config.pop("token_encoder")
    encoder: TokenEncoder
    if settings.pop("type") == "char_cnn":
        encoder = CharCnnEncoder(**settings)
    else:
        begin_id, end_id = MARK_IDS
        table_size = 1 + (len(MARK_IDS) if num_words is None else num_words)
        encoder = WordEncoder(**settings, num_words=table_size, begin_id=begin_id, end_id=end_id)
    return BiLm(
        token_encoder=encoder, dropout=0.0, state=state, matmul_dtype=matmul_dtype, **config
    )


SIDECAR = "-official"


class OfficialBlueprint(NamedTuple):
    """
    The sizes that it takes to build a biLM of official files again, which a task's archive stores.
    `num_words` counts the rows of its table of words; `None` if it reads characters.
    """

    options: Options
    num_words: Optional[int]

    @classmethod
    def of(cls, bilm: BiLm) -> "OfficialBlueprint":
        """
        The blueprint of a biLM with the token encoder `char_cnn` or `word`. Raises `ValueError` if
        it has no official form.
        """
        encoder = bilm.token_encoder
        num_words: Optional[int] = None
        if isinstance(encoder, WordEncoder):
            num_words = encoder.embedding.num_embeddings - 1
        return cls(Options.of(bilm), num_words)

    def write(self, serialization_dir: Union[str, PathLike], options_file: str) -> None:
        """
        Writes the blueprint to where AllenNLP packs it into the archive of the training.
        `options_file` names the file that the options came from, and `read` finds them by it.
        """
        kept = kept_in_archive(serialization_dir, SIDECAR) or {}
        kept[options_file] = {"options": self.options.to_json(), "num_words": self.num_words}
        keep_in_archive(serialization_dir, SIDECAR, kept)

    @classmethod
    def read(
        cls, serialization_dir: Union[str, PathLike], options_file: str
    ) -> Optional["OfficialBlueprint"]:
        """
        Reads the blueprint that `write` stored in a training's folder, or in its unpacked archive;
        `None` if there is none. Raises `ConfigurationError` if it is damaged.
        """
        with reading_kept(serialization_dir, SIDECAR):
            plan = (kept_in_archive(serialization_dir, SIDECAR) or {}).get(options_file)
            if plan is None:
                return None
            path = archived_path(serialization_dir, SIDECAR)
            return cls(Options.from_json(plan["options"], str(path)), plan["num_words"])
