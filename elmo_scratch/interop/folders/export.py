"""Writes a biLM of any kind as a model folder."""

from os import PathLike
from pathlib import Path
from typing import Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.atomic import check_folder
from elmo_scratch.interop.folders.writing import FILES
from elmo_scratch.interop.reading import read_bilm
from elmo_scratch.modules import BiLm


def export_model_folder(
    model: Union[str, PathLike],
    folder: Union[str, PathLike],
    *,
    dtype: str = "float32",
    overwrite: bool = False,
) -> BiLm:
    """
    Writes a model folder with all that came with a biLM: its softmax, its words and, on the model
    card, what is known of its training.

    # Parameters

    model : `Union[str, PathLike]`
        A biLM of any kind that `read_bilm` reads.
    folder : `Union[str, PathLike]`
        The output folder, made if it doesn't exist.
    dtype : `str`, optional (default = `"float32"`)
        The type that the weights are stored in, as in `write_bilm_folder`.
    overwrite : `bool`, optional (default = `False`)
        Replace the files of another biLM there.

    # Returns

    `BiLm`
        What was written.

    # Raises

    ConfigurationError
        If the biLM can't be read, or a model folder can't hold it, or not in this `dtype`; or the
        folder can't be written to or holds one of the files already.
    """
    check_folder(Path(folder), FILES, overwrite, "`--overwrite`")
    read = read_bilm(model, with_softmax=True)
    try:
        read.save_pretrained(folder, dtype=dtype, overwrite=overwrite)
    except ValueError as error:
        raise ConfigurationError(f"{model}: {error}") from None
    return read.bilm
