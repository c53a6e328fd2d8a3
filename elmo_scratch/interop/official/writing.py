"""Writes a biLM as official files."""

from os import PathLike
from pathlib import Path
from typing import Dict, List, Union

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.interop.layer_files.hdf5_stream import OutputStream
from elmo_scratch.interop.official.options import OfficialBlueprint
from elmo_scratch.interop.official.reading import Form, Shape, official_place, official_shapes
from elmo_scratch.modules import BiLm

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
    sizes = OfficialBlueprint.of(bilm)
    tensors = official_tensors(bilm, official_shapes(*sizes))
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
        settings.write_text(sizes.options.to_json(), encoding="utf-8")
        with (
            OutputStream.open(weights, folder / WEIGHTS_NAME) as stream,
            stream.hdf5_file() as file,
        ):
            for name, tensor in tensors.items():
                file.create_dataset(name, data=tensor)


def official_tensors(bilm: BiLm, shapes: Dict[str, Shape]) -> Dict[str, numpy.ndarray]:
    """
    The official tensors of a biLM by their paths, float32. `shapes` are those of `official_shapes`.
    Raises `ValueError` if a weight is not finite in float32.
    """
    parts: Dict[str, List[numpy.ndarray]] = {path: [] for path in shapes}
    for name, parameter in bilm.named_parameters(remove_duplicate=False):
        numbers = parameter.detach().float().cpu().numpy()
        if not numpy.isfinite(numbers).all():
            raise ValueError(
                f"{name}: expected finite numbers, but there are others; such weights come of a "
                "training that diverged"
            )
        path, form = official_place(name)
        parts[path].append(numbers[1:] if form is Form.ROWS else numbers.T)
    return {
        # Input weights above recurrent weights; all other tensors have one part.
        path: numpy.array(numpy.concatenate(parts[path]).reshape(shape), order="C")
        for path, shape in shapes.items()
    }
