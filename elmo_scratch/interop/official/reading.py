"""Reads a biLM from official files."""

from typing import Dict, Optional

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.official.options import Options
from elmo_scratch.interop.official.tensors import fill, official_shapes
from elmo_scratch.interop.official.weight_file import Shape, Source, WeightFile, local_file
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder, TokenEncoder, WordEncoder

BEGIN_SENTENCE_ROW, END_SENTENCE_ROW = 0, 1
"""
The rows of `embedding` that mark sentence boundaries: a vocabulary file of `bilm-tf` begins with
`<S>`, `</S>` and `<UNK>`.
"""

MARK_IDS = (BEGIN_SENTENCE_ROW + 1, END_SENTENCE_ROW + 1)
"""The ids of the words that mark sentence boundaries."""


def read_official_options(options_file: Source) -> Options:
    """
    Reads an `options.json`.

    # Parameters

    options_file : `Union[str, PathLike]`
        A path or an address.

    # Raises

    ConfigurationError
        If it is missing or makes no sense.
    """
    return Options.from_json(local_file(options_file).read_bytes(), str(options_file))


def read_official_bilm(
    options_file: Source,
    weight_file: Source,
    *,
    state: str = "carry",
    matmul_dtype: str = "float32",
) -> BiLm:
    """
    Reads a biLM from official files.

    # Parameters

    options_file, weight_file : `Union[str, PathLike]`
        Paths or addresses of an `options.json` and a `weights.hdf5`.
    state : `str`, optional (default = `"carry"`, as the original does)
        The state that sentences start from, see `BiLm`.
    matmul_dtype : `str`, optional (default = `"float32"`)
        The type of matrix products, see `BiLm`.

    # Returns

    `BiLm`
        The biLM with the weights of the file, in evaluation mode. In a model of words the id of a
        word is its row in the file plus one.

    # Raises

    ConfigurationError
        If a file is missing or is not what it should be; if a tensor is missing, left over, of the
        wrong shape or type, or holds a number that is not finite.
    """
    options = read_official_options(options_file)
    with WeightFile.open(weight_file) as weights:
        num_words = _num_words(weights.shapes())
        _check_counts(options, str(options_file), len(weights.shapes()), str(weight_file))
        plan = _plan(options, str(options_file), num_words)
        weights.check_shapes(official_shapes(plan), str(options_file))
        if options.char_cnn is None and (num_words or 0) <= END_SENTENCE_ROW:
            raise ConfigurationError(
                f"{weight_file}: expected `embedding` to begin with the words for the beginning "
                f"and the end of a sentence, but it has {num_words} rows"
            )
        tensors = weights.read()
    bilm = build_bilm(options, num_words, state=state, matmul_dtype=matmul_dtype)
    fill(bilm, tensors)
    return bilm.eval()


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
    lstm = options.lstm
    return BiLm(
        token_encoder=_build_token_encoder(options, num_words or END_SENTENCE_ROW + 1),
        cell_size=lstm.dim,
        num_layers=lstm.n_layers,
        dropout=0.0,
        cell_clip=lstm.cell_clip,
        projection_clip=lstm.proj_clip,
        use_skip_connections=lstm.use_skip_connections,
        state=state,
        matmul_dtype=matmul_dtype,
    )


def _check_counts(options: Options, asked_by: str, num_tensors: int, source: str) -> None:
    """Refuses options with more parts than there are tensors, before a biLM is planned by them."""
    counts = {"n_layers": options.lstm.n_layers}
    if options.char_cnn is not None:
        counts["n_highway"] = options.char_cnn.n_highway
        counts["filters"] = len(options.char_cnn.filters)
    name, most = max(counts.items(), key=lambda item: item[1])
    if most > num_tensors:
        raise ConfigurationError(
            f"{source}: it holds {num_tensors} tensors, which is too few for {asked_by}, where "
            f"`{name}` asks for {most} layers or convolutions"
        )


def _plan(options: Options, asked_by: str, num_words: Optional[int]) -> BiLm:
    """
    Builds a biLM on the meta device: no memory is taken for sizes that the weights don't confirm.
    """
    try:
        with torch.device("meta"):
            return build_bilm(options, num_words, state="reset", matmul_dtype="float32")
    except (OverflowError, RuntimeError, TypeError) as error:
        # PyTorch raises these errors for sizes that are too large to count.
        raise ConfigurationError(f"{asked_by}: no biLM can have its sizes: {error}") from None


def _build_token_encoder(options: Options, num_words: int) -> TokenEncoder:
    cnn = options.char_cnn
    if cnn is None:
        return WordEncoder(
            dim=options.lstm.projection_dim,
            num_words=num_words + 1,
            begin_id=MARK_IDS[0],
            end_id=MARK_IDS[1],
        )
    return CharCnnEncoder(
        dim=options.lstm.projection_dim,
        filters=list(cnn.filters),
        character_dim=cnn.embedding_dim,
        num_highway=cnn.n_highway,
        activation=cnn.activation,
        max_characters_per_token=cnn.max_characters_per_token,
    )


def _num_words(shapes: Dict[str, Shape]) -> Optional[int]:
    """The rows of the table of words, if there is one."""
    shape = shapes.get("embedding")
    return shape[0] if shape else None


_MODEL = (
    "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway/"
    "elmo_2x4096_512_2048cnn_2xhighway_"
)

RELEASED_OPTIONS = _MODEL + "options.json"
RELEASED_WEIGHTS = _MODEL + "weights.hdf5"
