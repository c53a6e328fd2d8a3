"""Writes a biLM as official files."""

from os import PathLike
from pathlib import Path
from typing import Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.interop.layer_files.hdf5_stream import OutputStream
from elmo_scratch.interop.official.options import CharCnnOptions, LstmOptions, Options
from elmo_scratch.interop.official.reading import MARK_IDS
from elmo_scratch.interop.official.tensors import official_tensors
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder, WordEncoder

OPTIONS_NAME, WEIGHTS_NAME = "options.json", "weights.hdf5"


def write_official_bilm(bilm: BiLm, folder: Union[str, PathLike]) -> None:
    """
    Writes `options.json` and `weights.hdf5`.

    # Parameters

    bilm : `BiLm`
        A biLM with the token encoder `char_cnn` or `word`.
    folder : `Union[str, PathLike]`
        The output folder, made if it doesn't exist.

    # Raises

    ConfigurationError
        If `folder`, or a folder above it, is a file; or a file that should be written, a folder.
    OSError
        If the disk is full.
    ValueError
        If there is no official form of the biLM, or a weight is not a finite number.
    """
    folder = Path(folder)
    options = official_options(bilm)
    tensors = official_tensors(bilm)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ConfigurationError(
            f"{folder}: expected a folder to write to, but there is a file in its place or above it"
        ) from None
    for name in (OPTIONS_NAME, WEIGHTS_NAME):
        if (folder / name).is_dir():
            raise ConfigurationError(f"{folder / name}: expected a file, but it is a folder")
    with (
        atomic_write(folder / WEIGHTS_NAME) as weights,
        atomic_write(folder / OPTIONS_NAME) as settings,
    ):
        settings.write_text(options.to_json(), encoding="utf-8")
        with (
            OutputStream.open(weights, folder / WEIGHTS_NAME) as stream,
            stream.hdf5_file() as file,
        ):
            for name, tensor in tensors.items():
                file.create_dataset(name, data=tensor)


def official_options(bilm: BiLm) -> Options:
    """
    The content of `options.json` for a biLM with the token encoder `char_cnn` or `word`. Raises
    `ValueError` if the biLM has no official form.
    """
    encoder = bilm.token_encoder
    cnn = None
    if isinstance(encoder, WordEncoder) and encoder.mark_ids() != MARK_IDS:
        raise ValueError(
            "expected the words for the beginning and the end of a sentence to have the ids "
            f"{MARK_IDS}, the first two rows of `embedding`, but they have {encoder.mark_ids()}"
        )
    if isinstance(encoder, CharCnnEncoder):
        cnn = CharCnnOptions(
            embedding_dim=encoder.convolution.embedding.embedding_dim,
            filters=encoder.convolution.filters,
            n_highway=len(encoder.highways),
            activation=encoder.convolution.activation,
            max_characters_per_token=encoder.max_characters_per_token,
        )
    stack = bilm.left_to_right
    options = Options(
        LstmOptions(
            dim=stack.cell_size,
            projection_dim=bilm.dim,
            n_layers=bilm.num_layers - 1,
            cell_clip=stack.cell_clip,
            proj_clip=stack.projection_clip,
            # Skip connections need a second layer; AllenNLP accepts only `true`.
            use_skip_connections=stack.use_skip_connections or bilm.num_layers == 2,
        ),
        cnn,
    )
    try:
        return Options.from_json(options.to_json(), "the biLM")
    except ConfigurationError as error:
        raise ValueError(f"there is no official form of this biLM. {error}") from None
