"""Maps the names and shapes of our weights to the official file's and AllenNLP's."""

import re
from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

import numpy
import torch

from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder, WordEncoder

ALLENNLP_DIRECTIONS = {"forward": "left_to_right", "backward": "right_to_left"}

GATES = [0, 2, 1, 3]
"""AllenNLP orders the gates i, f, j, o; the original and this package i, j, f, o."""


class _Row(NamedTuple):
    """
    One kind of AllenNLP tensor: the pattern of its name, our names, and the conversion to ours.
    """

    theirs: str
    ours: List[str]
    to_ours: Callable[[torch.Tensor], Sequence[torch.Tensor]]


def _same(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    return [tensor]


def _filters(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    """Shape `(filters, c, width)` → `(filters, width * c)`."""
    return [tensor.transpose(1, 2).flatten(1)]


def _highway(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    """
    Splits transform and gate. AllenNLP's gate is the share that stays, ours the share that is
    transformed.
    """
    transform, stay = tensor.chunk(2)
    return [transform, -stay]


def _gates(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    return [tensor.unflatten(0, (4, -1))[GATES].flatten(0, 1)]


def _bias(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    """Subtracts the forget gate's constant, which AllenNLP includes in the bias."""
    (bias,) = _gates(tensor)
    first, last = len(bias) // 2, len(bias) * 3 // 4
    return [torch.cat([bias[:first], bias[first:last] - 1.0, bias[last:]])]


_ENCODER, _ENCODER_HERE = r"_token_embedder\.", "token_encoder."
_LAYER, _LAYER_HERE = r"_elmo_lstm\.(forward|backward)_layer_(\d+)\.", "{}.layers.{}."

_TABLE = [
    _Row(
        rf"{_ENCODER}_char_embedding_weights",
        [f"{_ENCODER_HERE}convolution.embedding.weight"],
        _same,
    ),
    _Row(
        rf"{_ENCODER}char_conv_(\d+)\.weight",
        [f"{_ENCODER_HERE}convolution.convolutions.{{}}.weight"],
        _filters,
    ),
    _Row(
        rf"{_ENCODER}char_conv_(\d+)\.bias",
        [f"{_ENCODER_HERE}convolution.convolutions.{{}}.bias"],
        _same,
    ),
    _Row(
        rf"{_ENCODER}_highways\._layers\.(\d+)\.(weight|bias)",
        [f"{_ENCODER_HERE}highways.{{}}.{part}.{{}}" for part in ("transform", "carry")],
        _highway,
    ),
    _Row(rf"{_ENCODER}_projection\.(weight|bias)", [f"{_ENCODER_HERE}projection.{{}}"], _same),
    _Row(rf"{_LAYER}input_linearity\.weight", [f"{_LAYER_HERE}input_weight"], _gates),
    _Row(rf"{_LAYER}state_linearity\.weight", [f"{_LAYER_HERE}recurrent_weight"], _gates),
    _Row(rf"{_LAYER}state_linearity\.bias", [f"{_LAYER_HERE}bias"], _bias),
    _Row(rf"{_LAYER}state_projection\.weight", [f"{_LAYER_HERE}projection_weight"], _same),
    # AllenNLP's vectors of `vocab_to_cache` are computed anew here.
    _Row(r"_word_embedding\.weight", [], lambda _: []),
]


def bilm_weights(theirs: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """
    Renames and converts the `state_dict()` of the biLM in `allennlp.modules.elmo.Elmo` to the
    weights of a `BiLm` over characters. Unknown names stay as they are.
    """
    ours: Dict[str, torch.Tensor] = {}
    for name, tensor in theirs.items():
        for row in _TABLE:
            if match := re.fullmatch(row.theirs, name):
                groups = [ALLENNLP_DIRECTIONS.get(group, group) for group in match.groups()]
                names = [template.format(*groups) for template in row.ours]
                ours.update(zip(names, row.to_ours(tensor)))
                break
        else:
            ours[name] = tensor
    return ours


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


OFFICIAL_DIRECTIONS = {"left_to_right": "RNN_0", "right_to_left": "RNN_1"}

Shape = Tuple[int, ...]


class Transform(NamedTuple):
    """
    Converts one or two of our parameters to an official tensor and back.

    `official_shape` gives the tensor's shape for the parameters' shapes. `to_ours` splits the
    tensor into parameters of given shapes; `to_official` makes the tensor of a given shape.
    """

    official_shape: Callable[[List[Shape]], Shape]
    to_ours: Callable[[numpy.ndarray, List[Shape]], List[numpy.ndarray]]
    to_official: Callable[[List[numpy.ndarray], Shape], numpy.ndarray]


SAME = Transform(
    official_shape=lambda shapes: shapes[0],
    to_ours=lambda tensor, shapes: [tensor],
    to_official=lambda parameters, shape: parameters[0],
)

TRANSPOSED = Transform(
    official_shape=lambda shapes: shapes[0][::-1],
    to_ours=lambda tensor, shapes: [tensor.T],
    to_official=lambda parameters, shape: parameters[0].T,
)

WITHOUT_PADDING_ROW = Transform(
    official_shape=lambda shapes: (shapes[0][0] - 1, *shapes[0][1:]),
    to_ours=lambda tensor, shapes: [numpy.pad(tensor, [(1, 0), (0, 0)])],
    to_official=lambda parameters, shape: parameters[0][1:],
)

STACKED_TRANSPOSED = Transform(
    official_shape=lambda shapes: (shapes[0][1] + shapes[1][1], shapes[0][0]),
    to_ours=lambda tensor, shapes: [tensor[: shapes[0][1]].T, tensor[shapes[0][1] :].T],
    to_official=lambda parameters, shape: numpy.concatenate(parameters, axis=1).T,
)
"""Input weights above recurrent weights."""


def convolution(width: int) -> Transform:
    """Filters of one width: `(filters, width * c)` here, `(1, width, c, filters)` in the file."""
    return Transform(
        official_shape=lambda shapes: (1, width, shapes[0][1] // width, shapes[0][0]),
        to_ours=lambda tensor, shapes: [tensor.reshape(-1, shapes[0][0]).T],
        to_official=lambda parameters, shape: parameters[0].T.reshape(shape),
    )


class TableRow(NamedTuple):
    """One tensor of a weight file: its path in the file and the names of our parameters in it."""

    name: str
    parameters: List[str]
    transform: Transform


def tensor_table(bilm: BiLm) -> List[TableRow]:
    """
    Lists every tensor of the official file of a biLM. Raises `ValueError` for a token encoder that
    has no official form.
    """
    return [*_token_encoder_rows(bilm), *_lstm_rows(bilm)]


def _token_encoder_rows(bilm: BiLm) -> List[TableRow]:
    """The tensors from words to the token layer."""
    encoder = bilm.token_encoder
    if isinstance(encoder, WordEncoder):
        return [TableRow("embedding", ["token_encoder.embedding.weight"], WITHOUT_PADDING_ROW)]
    if not isinstance(encoder, CharCnnEncoder):
        raise ValueError(
            "expected the token encoder `char_cnn` or `word`, for which there is an official form, "
            f"but got {type(encoder).__name__}"
        )
    rows = [
        TableRow("char_embed", ["token_encoder.convolution.embedding.weight"], WITHOUT_PADDING_ROW)
    ]
    for number, (width, _) in enumerate(encoder.convolution.filters):
        ours = f"token_encoder.convolution.convolutions.{number}"
        rows.append(TableRow(f"CNN/W_cnn_{number}", [f"{ours}.weight"], convolution(width)))
        rows.append(TableRow(f"CNN/b_cnn_{number}", [f"{ours}.bias"], SAME))
    for number in range(len(encoder.highways)):
        for part in ("transform", "carry"):
            ours = f"token_encoder.highways.{number}.{part}"
            rows.append(TableRow(f"CNN_high_{number}/W_{part}", [f"{ours}.weight"], TRANSPOSED))
            rows.append(TableRow(f"CNN_high_{number}/b_{part}", [f"{ours}.bias"], SAME))
    if encoder.is_projected:
        rows.append(TableRow("CNN_proj/W_proj", ["token_encoder.projection.weight"], TRANSPOSED))
        rows.append(TableRow("CNN_proj/b_proj", ["token_encoder.projection.bias"], SAME))
    return rows


def _lstm_rows(bilm: BiLm) -> List[TableRow]:
    """The tensors of both directions' layers."""
    rows: List[TableRow] = []
    for direction, group in OFFICIAL_DIRECTIONS.items():
        for number, layer in enumerate(bilm.get_submodule(f"{direction}.layers").children()):
            ours = f"{direction}.layers.{number}"
            cell = f"{group}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
            rows.append(
                TableRow(
                    f"{cell}/W_0",
                    [f"{ours}.input_weight", f"{ours}.recurrent_weight"],
                    STACKED_TRANSPOSED,
                )
            )
            # Neither bias holds the forget gate's constant: both programs add it at run time.
            rows.append(TableRow(f"{cell}/B", [f"{ours}.bias"], SAME))
            if layer.projection_weight is not None:
                rows.append(TableRow(f"{cell}/W_P_0", [f"{ours}.projection_weight"], TRANSPOSED))
    return rows


def official_shapes(bilm: BiLm) -> Dict[str, Shape]:
    """The shape of each tensor of the official file of a biLM, by name."""
    parameters = dict(bilm.named_parameters(remove_duplicate=False))
    return {
        row.name: row.transform.official_shape(_shapes(row, parameters))
        for row in tensor_table(bilm)
    }


def fill(bilm: BiLm, tensors: Dict[str, numpy.ndarray]) -> None:
    """Copies official tensors, whose names and shapes must fit, into a biLM."""
    parameters = dict(bilm.named_parameters(remove_duplicate=False))
    with torch.no_grad():
        for row in tensor_table(bilm):
            ours = row.transform.to_ours(tensors[row.name], _shapes(row, parameters))
            for name, numbers in zip(row.parameters, ours):
                parameters[name].copy_(torch.from_numpy(numpy.ascontiguousarray(numbers)))


def official_tensors(bilm: BiLm) -> Dict[str, numpy.ndarray]:
    """
    The official tensors of a biLM by name, float32. Raises `ValueError` if one is not finite in
    float32.
    """
    parameters = dict(bilm.named_parameters(remove_duplicate=False))
    tensors = {}
    for row in tensor_table(bilm):
        ours = [parameters[name].detach().float().cpu().numpy() for name in row.parameters]
        if not all(numpy.isfinite(numbers).all() for numbers in ours):
            raise ValueError(
                f"{' and '.join(row.parameters)}: expected finite numbers, but there are others; "
                "such weights come of a training that diverged"
            )
        shape = row.transform.official_shape(_shapes(row, parameters))
        tensors[row.name] = numpy.array(row.transform.to_official(ours, shape), order="C")
    return tensors


def _shapes(row: TableRow, parameters: Dict[str, torch.nn.Parameter]) -> List[Shape]:
    return [tuple(parameters[name].shape) for name in row.parameters]
