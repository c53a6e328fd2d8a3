"""
Reads and writes the official files of a biLM, and reads weights that AllenNLP's `Elmo` has saved.
One table has the three names of each weight. Files that are read may come from an untrusted source.
"""

import math
import os
import re
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple, Union

import h5py
import numpy
import torch
from allennlp.common.checks import ConfigurationError
from h5py import h5o

from elmo_scratch.alphabet import NUM_CHARACTERS
from elmo_scratch.files.atomic import atomic_writes
from elmo_scratch.files.strict_json import one_line
from elmo_scratch.interop.layer_files.hdf5 import OutputStream, open_hdf5
from elmo_scratch.interop.layer_files.reader import refused_size
from elmo_scratch.interop.named_models import BUCKETS, NAMED_MODELS, official_file
from elmo_scratch.interop.official.options import MARK_IDS, OfficialBlueprint, Options, build_bilm
from elmo_scratch.interop.zipped_models import OPTIONS_NAME, WEIGHTS_NAME
from elmo_scratch.modules import BiLm
from elmo_scratch_compat.bounds import HDF5_ALWAYS, HDF5_COMPRESSIBLE
from elmo_scratch_compat.strangers import told_of

Source = Union[str, PathLike]
Shape = Tuple[int, ...]

RELEASED_OPTIONS, RELEASED_WEIGHTS = (BUCKETS[0] + file.path for file in NAMED_MODELS["original"])


class Form(Enum):
    """What a parameter is, where that decides how other files hold it."""

    ROWS = "a table, here with a first row for padding"
    FILTERS = "the filters of one width"
    TRANSFORM = "the transform of a highway layer"
    CARRY = "the gate of a highway layer"
    INPUT = "input weights of all gates"
    RECURRENT = "recurrent weights of all gates"
    GATE_BIAS = "biases of all gates"
    PLAIN = "any other matrix or bias"


class Weight(NamedTuple):
    """
    A parameter by its names in a `BiLm`, in an official file and in AllenNLP's `Elmo`. `#` stands
    for the number of a filter width or of a layer.
    """

    ours: str
    official: str
    allennlp: Optional[str]
    form: Form


_HIGHWAY = "_highways._layers.#"
_ENCODER_WEIGHTS = [
    ("convolution.embedding.weight", "char_embed", "_char_embedding_weights", Form.ROWS),
    ("convolution.convolutions.#.weight", "CNN/W_cnn_#", "char_conv_#.weight", Form.FILTERS),
    ("convolution.convolutions.#.bias", "CNN/b_cnn_#", "char_conv_#.bias", Form.PLAIN),
    ("highways.#.transform.weight", "CNN_high_#/W_transform", f"{_HIGHWAY}.weight", Form.TRANSFORM),
    ("highways.#.transform.bias", "CNN_high_#/b_transform", f"{_HIGHWAY}.bias", Form.TRANSFORM),
    ("highways.#.carry.weight", "CNN_high_#/W_carry", f"{_HIGHWAY}.weight", Form.CARRY),
    ("highways.#.carry.bias", "CNN_high_#/b_carry", f"{_HIGHWAY}.bias", Form.CARRY),
    ("projection.weight", "CNN_proj/W_proj", "_projection.weight", Form.PLAIN),
    ("projection.bias", "CNN_proj/b_proj", "_projection.bias", Form.PLAIN),
]
_LAYER_WEIGHTS = [
    # `W_0` holds the input weights above the recurrent ones.
    ("input_weight", "W_0", "input_linearity.weight", Form.INPUT),
    ("recurrent_weight", "W_0", "state_linearity.weight", Form.RECURRENT),
    ("bias", "B", "state_linearity.bias", Form.GATE_BIAS),
    ("projection_weight", "W_P_0", "state_projection.weight", Form.PLAIN),
]
_DIRECTIONS = [("left_to_right", "RNN_0", "forward"), ("right_to_left", "RNN_1", "backward")]
_CELL = "RNN/MultiRNNCell/Cell#/LSTMCell"

WEIGHTS = [
    Weight("token_encoder.embedding.weight", "embedding", None, Form.ROWS),
    *(
        Weight(f"token_encoder.{ours}", official, f"_token_embedder.{theirs}", form)
        for ours, official, theirs, form in _ENCODER_WEIGHTS
    ),
    *(
        Weight(
            f"{direction}.layers.#.{ours}",
            f"{group}/{_CELL}/{official}",
            f"_elmo_lstm.{their_direction}_layer_#.{theirs}",
            form,
        )
        for direction, group, their_direction in _DIRECTIONS
        for ours, official, theirs, form in _LAYER_WEIGHTS
    ),
]
"""All weights of the biLMs that other programs have."""

_BY_OURS = {weight.ours: weight for weight in WEIGHTS}
_NUMBER = re.compile(r"\d+")


def official_place(name: str) -> Tuple[str, Form]:
    """The path in official files of the tensor that holds the parameter `name`, and its form."""
    weight = _BY_OURS[_NUMBER.sub("#", name)]
    return weight.official.replace("#", "".join(_NUMBER.findall(name))), weight.form


def official_shapes(options: Options, num_words: Optional[int]) -> Dict[str, Shape]:
    """
    The shape of each tensor of a weight file, by its path. `num_words` counts the rows of the table
    of words, for a model of words.
    """
    lstm, cnn = options.lstm, options.char_cnn
    dim, gates = lstm.projection_dim, 4 * lstm.dim
    shapes: Dict[str, Shape] = {}
    if cnn is None:
        shapes["embedding"] = (len(MARK_IDS) if num_words is None else num_words, dim)
    else:
        shapes["char_embed"] = (NUM_CHARACTERS, cnn.embedding_dim)
        for number, (width, num_filters) in enumerate(cnn.filters):
            shapes[f"CNN/W_cnn_{number}"] = (1, width, cnn.embedding_dim, num_filters)
            shapes[f"CNN/b_cnn_{number}"] = (num_filters,)
        all_filters = sum(num_filters for _, num_filters in cnn.filters)
        for number in range(cnn.n_highway):
            for part in ("transform", "carry"):
                shapes[f"CNN_high_{number}/W_{part}"] = (all_filters, all_filters)
                shapes[f"CNN_high_{number}/b_{part}"] = (all_filters,)
        if all_filters != dim:
            shapes["CNN_proj/W_proj"] = (all_filters, dim)
            shapes["CNN_proj/b_proj"] = (dim,)
    for _, group, _ in _DIRECTIONS:
        for number in range(lstm.n_layers):
            cell = f"{group}/{_CELL}".replace("#", str(number))
            shapes[f"{cell}/W_0"] = (2 * dim, gates)
            shapes[f"{cell}/B"] = (gates,)
            if lstm.dim != dim:
                shapes[f"{cell}/W_P_0"] = (lstm.dim, dim)
    return shapes


def neutral_shapes(options: Options) -> Dict[str, Shape]:
    """
    The shapes of tensors that a biLM does without, by their paths: of projections where sizes are
    equal. AllenNLP reads them all the same, so the file gets projections that change nothing; the
    original looks tensors up by name and doesn't look for these.
    """
    lstm, cnn = options.lstm, options.char_cnn
    dim = lstm.projection_dim
    shapes: Dict[str, Shape] = {}
    if cnn is not None and sum(num_filters for _, num_filters in cnn.filters) == dim:
        shapes["CNN_proj/W_proj"] = (dim, dim)
        shapes["CNN_proj/b_proj"] = (dim,)
    if lstm.dim == dim:
        for _, group, _ in _DIRECTIONS:
            for number in range(lstm.n_layers):
                cell = f"{group}/{_CELL}".replace("#", str(number))
                shapes[f"{cell}/W_P_0"] = (dim, dim)
    return shapes


def neutral(shape: Shape) -> numpy.ndarray:
    """The matrix or the bias, by its shape, of a projection that changes nothing."""
    return numpy.eye(*shape, dtype="float32") if len(shape) == 2 else numpy.zeros(shape, "float32")


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
    return Options.from_json(official_file(options_file).read_bytes(), str(options_file))


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
    with told_of(options_file, "the options of a biLM", is_named=True):
        options = read_official_options(options_file)
    # No memory is taken for sizes that the weight file doesn't confirm.
    tensors = read_tensors(weight_file, options, str(options_file))
    num_words = len(tensors["embedding"]) if options.char_cnn is None else None
    bilm = build_bilm(options, num_words, state=state, matmul_dtype=matmul_dtype)
    load_tensors(bilm, tensors)
    return bilm.eval()


def load_tensors(bilm: BiLm, tensors: Dict[str, numpy.ndarray]) -> None:
    """Copies official tensors, whose names and shapes must fit, into a biLM."""
    with torch.no_grad():
        for name, parameter in bilm.named_parameters():
            path, form = official_place(name)
            tensor = tensors[path]
            if form is Form.ROWS:
                tensor = numpy.pad(tensor, [(1, 0), (0, 0)])
            elif form is Form.FILTERS:  # (1, width, c, filters) → (filters, width * c)
                tensor = tensor.reshape(-1, tensor.shape[-1]).T
            elif form is Form.INPUT:
                tensor = tensor[: len(tensor) // 2].T
            elif form is Form.RECURRENT:
                tensor = tensor[len(tensor) // 2 :].T
            else:
                tensor = tensor.T
            parameter.copy_(torch.from_numpy(numpy.ascontiguousarray(tensor)))


def read_tensors(
    weight_file: Source, options: Options, options_source: str
) -> Dict[str, numpy.ndarray]:
    """
    Reads the tensors of an official weight file as float32, by their paths: only numbers that are
    stored in the file itself, and only after their shapes were checked.

    # Parameters

    weight_file : `Union[str, PathLike]`
        A path or an address.
    options : `Options`
        The sizes that the tensors must have.
    options_source : `str`
        The name of the file that the options came from, for error messages.

    # Raises

    ConfigurationError
        If the file is missing or can't be read; if a tensor is missing, left over, of the wrong
        shape or type, would take far more memory than the file, or holds a number that is not
        finite.
    """
    source, path = str(weight_file), official_file(weight_file)
    tensors: Dict[str, numpy.ndarray] = {}
    try:
        with open_hdf5(path) as file:
            found = find_tensors(file, source)
            _check_shapes(found, source, options, options_source)
            unused = neutral_shapes(options)
            for name, dataset in found.items():
                try:
                    with numpy.errstate(over="ignore"):
                        tensors[name] = dataset[...].astype("float32", copy=False)
                except MemoryError:
                    raise ConfigurationError(
                        f"{source}: its tensors don't fit into memory; there was no room for "
                        f"{name}, of the shape {dataset.shape}"
                    ) from None
                if not numpy.isfinite(tensors[name]).all():
                    raise ConfigurationError(
                        f"{source}: {name} holds numbers that are not finite; such weights come of "
                        "a training that diverged or of a damaged file"
                    )
                if name in unused and not numpy.array_equal(
                    tensors.pop(name), neutral(unused[name])
                ):
                    raise ConfigurationError(
                        f"{source}: expected {name} to change nothing, as the identity and a bias "
                        "of zeros do, but it holds other numbers. Its projection keeps the size of "
                        "vectors: bilm-tf ignores such a one, AllenNLP doesn't. If the biLM was "
                        "trained by bilm-tf, remove it"
                    )
    except ConfigurationError:
        raise
    except Exception as error:  # h5py raises nearly every kind of error for damaged files
        raise ConfigurationError(
            f"{source}: expected the weights of a biLM in an HDF5 file, but it can't be read; if "
            f"it was downloaded, the download may be incomplete. {error}"
        ) from None
    return tensors


DEEPEST = 16
"""A path in a weight file may lead through this many groups; `W_0` lies in five."""

NUM_BYTES = 4
"""Bytes of a number in memory."""


def find_tensors(file: h5py.File, source: str) -> Dict[str, h5py.Dataset]:
    """
    The data sets of a file by their paths. Refuses what no weight file holds, and data sets that
    would take far more memory than the file has numbers for, one by one or together.
    """
    found: Dict[str, h5py.Dataset] = {}
    seen: Set[int] = {h5o.get_info(file.id).addr}
    paths = [name.decode() for name in file["/"].id]
    for path in paths:  # grows by the members of each group
        is_link = not isinstance(file.get(path, getlink=True), h5py.HardLink)
        member: Any = None if is_link else file[path]
        address = 0 if is_link else h5o.get_info(member.id).addr
        what = ""
        if is_link:
            what = "a link"
        # Groups that each hold the next one twice would take forever to visit.
        elif address in seen:
            what = "the same as another"
        elif isinstance(member, h5py.Group):
            what = f"in more than {DEEPEST} groups" if path.count("/") > DEEPEST else ""
        elif not isinstance(member, h5py.Dataset) or member.shape is None:
            what = "no tensor"
        elif member.external or member.is_virtual:
            what = "stored in another file"
        elif member.dtype.kind != "f":
            what = f"of the type {member.dtype}"
        if what:
            raise ConfigurationError(
                f"{source}: expected a tensor of numbers with a fraction at {path}, but it is "
                f"{what}"
            )
        seen.add(address)
        if isinstance(member, h5py.Group):
            paths += [f"{path}/{name.decode()}" for name in member.id]
            continue
        reason = refused_size(file, member.id, member.id.get_create_plist())
        if reason:
            raise ConfigurationError(f"{source}: {path} has the shape {member.shape} and {reason}")
        found[path] = member
    # Many tensors may be small enough one by one.
    total = sum(math.prod(dataset.shape) * NUM_BYTES for dataset in found.values())
    stored = os.path.getsize(file.filename)
    if total > HDF5_ALWAYS + HDF5_COMPRESSIBLE * stored:
        raise ConfigurationError(
            f"{source}: its tensors would take {total} bytes of memory together, but it has no "
            f"more than {stored} bytes"
        )
    return found


def _check_shapes(
    found: Dict[str, h5py.Dataset], source: str, options: Options, options_source: str
) -> None:
    """Refuses tensors of other names or shapes than the files of a biLM of these sizes have."""
    counts = {"n_layers": options.lstm.n_layers}
    if options.char_cnn is not None:
        counts["n_highway"] = options.char_cnn.n_highway
        counts["filters"] = len(options.char_cnn.filters)
    for name, count in counts.items():
        # The shapes of so many would take forever to list.
        if count > len(found):
            raise ConfigurationError(
                f"{source}: it holds {len(found)} tensors, which is too few for {options_source}, "
                f"where `{name}` asks for {count} layers or convolutions"
            )
    words: Shape = found["embedding"].shape if "embedding" in found else ()
    expected = official_shapes(options, words[0] if words else None)
    unused = neutral_shapes(options)
    for name, shape in {**expected, **unused}.items():
        if name not in found:
            if name in unused:
                continue
            raise ConfigurationError(
                f"{source}: the tensor {name}, of the shape {shape}, is missing, which "
                f"{options_source} asks for; the file holds {sorted(found)}"
            )
        if found[name].shape != shape:
            raise ConfigurationError(
                f"{source}: expected {name} to have the shape {shape}, by the sizes in "
                f"{options_source}, but it has the shape {found[name].shape}"
            )
    for name in sorted(set(found) - set(expected) - set(unused)):
        raise ConfigurationError(
            f"{source}: the tensor {one_line(name)}, of the shape {found[name].shape}, is left "
            f"over: the biLM of {options_source} has none of that name"
        )
    if options.char_cnn is None and words[0] < len(MARK_IDS):
        raise ConfigurationError(
            f"{source}: expected `embedding` to begin with the words for the beginning and the end "
            f"of a sentence, but it has {words[0]} rows"
        )


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
    for name, shape in neutral_shapes(sizes.options).items():
        tensors[name] = neutral(shape)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ConfigurationError(
            f"{folder}: expected a folder to write to, but there is a file in its place or above it"
        ) from None
    for name in (OPTIONS_NAME, WEIGHTS_NAME):
        if (folder / name).is_dir():
            raise ConfigurationError(f"{folder / name}: expected a file, but it is a folder")
    with atomic_writes(folder, [OPTIONS_NAME, WEIGHTS_NAME]) as written:
        (written / OPTIONS_NAME).write_text(sizes.options.to_json(), encoding="utf-8")
        with (
            OutputStream.open(written / WEIGHTS_NAME, folder / WEIGHTS_NAME) as stream,
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


def bilm_weights(theirs: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """
    Renames and converts the `state_dict()` of the biLM in `allennlp.modules.elmo.Elmo` to the
    weights of a `BiLm` over characters. Projections that change nothing are left out, as a `BiLm`
    has none between equal sizes. Unknown names stay as they are.
    """
    ours: Dict[str, torch.Tensor] = {}
    unused = _identities(theirs)
    for name, tensor in theirs.items():
        if name not in unused:
            # AllenNLP's vectors of `vocab_to_cache` are computed anew here.
            other = {} if name == "_word_embedding.weight" else {name: tensor}
            ours.update(converted_weight(name, tensor) or other)
    return ours


def converted_weight(name: str, tensor: torch.Tensor) -> Dict[str, torch.Tensor]:
    """
    The parameters of a `BiLm` that a tensor of the biLM in `allennlp.modules.elmo.Elmo` holds, by
    their names; none if there is no such tensor.
    """
    pattern, number = _NUMBER.sub("#", name), "".join(_NUMBER.findall(name))
    return {
        weight.ours.replace("#", number): _from_allennlp(tensor, weight.form)
        for weight in WEIGHTS
        if weight.allennlp == pattern
    }


def _identities(theirs: Dict[str, torch.Tensor]) -> Set[str]:
    """The names of the projections that change nothing, each with its bias."""
    names: Set[str] = set()
    for name, tensor in theirs.items():
        bias = re.sub("weight$", "bias", name)
        if (
            name.endswith("_projection.weight")
            and torch.equal(tensor, torch.eye(len(tensor)).to(tensor))
            and (bias not in theirs or not theirs[bias].any())
        ):
            names |= {name, bias}
    return names


def _from_allennlp(tensor: torch.Tensor, form: Form) -> torch.Tensor:
    """Converts the tensor of AllenNLP's `Elmo` that holds a parameter."""
    if form is Form.FILTERS:  # (filters, c, width) → (filters, width * c)
        return tensor.transpose(1, 2).flatten(1)
    # AllenNLP's gate is the share that stays, ours the share that is transformed.
    if form is Form.TRANSFORM:
        return tensor.chunk(2)[0]
    if form is Form.CARRY:
        return -tensor.chunk(2)[1]
    if form in (Form.INPUT, Form.RECURRENT, Form.GATE_BIAS):
        # AllenNLP orders the gates i, f, j, o; the original and this package i, j, f, o.
        i, f, j, o = tensor.chunk(4)
        # AllenNLP's bias includes the forget gate's constant; the others add it at run time.
        return torch.cat([i, j, f - 1.0 if form is Form.GATE_BIAS else f, o])
    return tensor


def mix_weights(theirs: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """
    Renames the `state_dict()` of AllenNLP's `ScalarMix` (one weight a layer, and γ, each of shape
    `(1,)`) to that of a `TrainableMix`.
    """
    ours = {name: tensor for name, tensor in theirs.items() if "scalar_parameters" not in name}
    if "gamma" in ours:
        ours["gamma"] = ours["gamma"].reshape(())
    count = len(theirs) - len(ours)
    if count:
        ours["weights"] = torch.cat([theirs[f"scalar_parameters.{n}"] for n in range(count)])
    return ours
