"""Official files, read as a biLM."""

from os import PathLike
from pathlib import Path
from typing import Dict, List, Optional, Tuple, Union

import h5py
import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path

from elmo_scratch.interop.official.tensor_table import fill, official_shapes
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder, TokenEncoder, WordEncoder
from elmo_scratch.options import Options

Source = Union[str, PathLike]

BEGIN_WORD_ROW, END_WORD_ROW = 0, 1
"""The rows of `embedding` that mark sentence boundaries: a vocabulary file of `bilm-tf` begins with
`<S>`, `</S>` and `<UNK>`."""


def read_official_options(options_file: Source) -> Options:
    """
    # Parameters

    options_file : `Union[str, PathLike]`
        A path or an address.

    # Raises

    ConfigurationError
        If it is missing or makes no sense.
    """
    return Options.from_json(_local(options_file).read_bytes(), str(options_file))


def read_official_bilm(
    options_file: Source,
    weight_file: Source,
    *,
    state: str = "carry",
    matmul_dtype: str = "float32",
) -> BiLm:
    """
    # Parameters

    options_file, weight_file : `Union[str, PathLike]`
        Paths or addresses of an `options.json` and a `weights.hdf5`.
    state : `str`, optional (default = `"carry"`, as the original does)
        As in `BiLm`.
    matmul_dtype : `str`, optional (default = `"float32"`)
        As in `BiLm`.

    # Returns

    `BiLm`
        With the weights of the file, in evaluation mode. A model of words has the row of a word
        in the file plus one as its id.

    # Raises

    ConfigurationError
        If a file is missing or is not what it should be; if a tensor is missing, left over, of the
        wrong shape or type, or holds a number that is not finite.
    """
    options = read_official_options(options_file)
    tensors = _read_tensors(weight_file)
    bilm = build_bilm(options, _num_words(tensors), state=state, matmul_dtype=matmul_dtype)
    _check_shapes(tensors, official_shapes(bilm), str(options_file), str(weight_file))
    fill(bilm, tensors)
    return bilm.eval()


def build_bilm(
    options: Options, num_words: Optional[int], *, state: str, matmul_dtype: str
) -> BiLm:
    """
    # Parameters

    options : `Options`
        The sizes of a biLM.
    num_words : `Optional[int]`
        Rows of the table of words, for a model of words.
    state, matmul_dtype : `str`
        As in `BiLm`.

    # Returns

    `BiLm`
        With fresh random weights.
    """
    lstm = options.lstm
    return BiLm(
        token_encoder=_build_token_encoder(options, num_words or END_WORD_ROW + 1),
        cell_size=lstm.dim,
        num_layers=lstm.n_layers,
        dropout=0.0,
        cell_clip=lstm.cell_clip,
        projection_clip=lstm.proj_clip,
        use_skip_connections=lstm.use_skip_connections,
        state=state,
        matmul_dtype=matmul_dtype,
    )


def _build_token_encoder(options: Options, num_words: int) -> TokenEncoder:
    """The encoder that the options ask for."""
    cnn = options.char_cnn
    if cnn is None:
        return WordEncoder(
            dim=options.lstm.projection_dim,
            num_words=num_words + 1,
            begin_id=BEGIN_WORD_ROW + 1,
            end_id=END_WORD_ROW + 1,
        )
    return CharCnnEncoder(
        dim=options.lstm.projection_dim,
        filters=list(cnn.filters),
        character_dim=cnn.embedding_dim,
        num_highway=cnn.n_highway,
        activation=cnn.activation,
        max_characters_per_token=cnn.max_characters_per_token,
    )


def _local(file: Source) -> Path:
    """Where a file lies, fetched if it is elsewhere."""
    try:
        path = Path(cached_path(file))
    except FileNotFoundError:
        raise ConfigurationError(f"{file}: there is no such file") from None
    if path.is_dir():
        raise ConfigurationError(f"{file}: expected a file, but it is a folder")
    return path


def _read_tensors(weight_file: Source) -> Dict[str, numpy.ndarray]:
    """All data sets of a weight file as float32, by their paths."""
    path = _local(weight_file)
    tensors: Dict[str, numpy.ndarray] = {}
    try:
        with h5py.File(path, "r") as file:
            for name, dataset in _datasets(file):
                if dataset.dtype.kind != "f":
                    raise ConfigurationError(
                        f"{weight_file}: expected numbers with a fraction in {name}, but got the "
                        f"type {dataset.dtype}"
                    )
                tensors[name] = dataset[...].astype("float32", copy=False)
                if not numpy.isfinite(tensors[name]).all():
                    raise ConfigurationError(
                        f"{weight_file}: {name} holds numbers that are not finite; such weights "
                        "come of a training that diverged or a file that was damaged"
                    )
    except (OSError, RuntimeError, KeyError) as error:
        raise ConfigurationError(
            f"{weight_file}: expected the weights of a biLM in an HDF5 file, but it can't be read; "
            f"if it was downloaded, the download may be incomplete. {error}"
        ) from None
    return tensors


def _datasets(file: h5py.File) -> List[Tuple[str, h5py.Dataset]]:
    """The data sets that lie in a file itself. Links to other files are not followed."""
    found: List[Tuple[str, h5py.Dataset]] = []

    def visit(group: h5py.Group, prefix: str) -> None:
        for name in group:
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise RuntimeError(f"{prefix}{name} is a link, which no weight file has")
            member = group[name]
            if isinstance(member, h5py.Group):
                visit(member, f"{prefix}{name}/")
            else:
                found.append((f"{prefix}{name}", member))

    visit(file, "")
    return found


def _num_words(tensors: Dict[str, numpy.ndarray]) -> Optional[int]:
    """The rows of the table of words, if there is one."""
    table = tensors.get("embedding")
    return None if table is None or table.ndim == 0 else len(table)


def _check_shapes(
    tensors: Dict[str, numpy.ndarray],
    expected: Dict[str, Tuple[int, ...]],
    options_file: str,
    weight_file: str,
) -> None:
    """Explains what doesn't fit."""
    for name, shape in expected.items():
        if name not in tensors:
            raise ConfigurationError(
                f"{weight_file}: the tensor {name}, of the shape {shape}, is missing, which "
                f"{options_file} asks for; the file holds {sorted(tensors)}"
            )
        if tensors[name].shape != shape:
            raise ConfigurationError(
                f"{weight_file}: expected {name} to have the shape {shape}, by the sizes in "
                f"{options_file}, but it has the shape {tensors[name].shape}"
            )
    for name in sorted(set(tensors) - set(expected)):
        raise ConfigurationError(
            f"{weight_file}: the tensor {name}, of the shape {tensors[name].shape}, is left over: "
            f"the biLM of {options_file} has none of that name"
        )
