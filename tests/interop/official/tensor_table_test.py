import json
from pathlib import Path
from typing import Any, Callable, Dict

import h5py
import numpy
import pytest
import torch

from elmo_scratch.interop.official.files import (
    load_tensors,
    official_place,
    official_shapes,
    official_tensors,
)
from elmo_scratch.interop.official.options import OfficialBlueprint
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder, TokenEncoder, WordEncoder
from tests.interop.official.reference import (
    BATCHES,
    RESIDUAL,
    character_batch,
    layers_of,
    reading_error,
    replacing,
    with_options,
    with_tensors,
)
from tests.modules.tiny_bilms import LetterEncoder

DIM, CELLS = 4, 7
CELL = "RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell"


def characters(dim: int = DIM, num_highway: int = 1) -> CharCnnEncoder:
    return CharCnnEncoder(
        dim=dim, filters=[(1, 2), (3, 5)], character_dim=3, num_highway=num_highway
    )


def words() -> WordEncoder:
    return WordEncoder(dim=DIM, num_words=10, begin_id=1, end_id=2)


def numbered(shape: tuple) -> numpy.ndarray:
    """Numbers that are all different."""
    return numpy.arange(numpy.prod(shape), dtype="float32").reshape(shape) + 1


def lstm_shapes(layers: int, dim: int, cells: int) -> Dict[str, tuple]:
    shapes: Dict[str, tuple] = {}
    for direction in (0, 1):
        for layer in range(layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes[f"{cell}/W_0"] = (2 * dim, 4 * cells)
            shapes[f"{cell}/B"] = (4 * cells,)
            if dim != cells:
                shapes[f"{cell}/W_P_0"] = (cells, dim)
    return shapes


def shapes_of(bilm: BiLm) -> Dict[str, tuple]:
    return official_shapes(*OfficialBlueprint.of(bilm))


def tensors_of(bilm: BiLm) -> Dict[str, numpy.ndarray]:
    return official_tensors(bilm, shapes_of(bilm))


def test_the_tensors_of_a_model_of_characters() -> None:
    bilm = BiLm(token_encoder=characters(num_highway=2), cell_size=CELLS)
    assert shapes_of(bilm) == {
        "char_embed": (261, 3),
        "CNN/W_cnn_0": (1, 1, 3, 2),
        "CNN/b_cnn_0": (2,),
        "CNN/W_cnn_1": (1, 3, 3, 5),
        "CNN/b_cnn_1": (5,),
        "CNN_high_0/W_transform": (7, 7),
        "CNN_high_0/b_transform": (7,),
        "CNN_high_0/W_carry": (7, 7),
        "CNN_high_0/b_carry": (7,),
        "CNN_high_1/W_transform": (7, 7),
        "CNN_high_1/b_transform": (7,),
        "CNN_high_1/W_carry": (7, 7),
        "CNN_high_1/b_carry": (7,),
        "CNN_proj/W_proj": (7, DIM),
        "CNN_proj/b_proj": (DIM,),
        **lstm_shapes(2, DIM, CELLS),
    }


def test_as_many_filters_as_dimensions_need_no_projection() -> None:
    bilm = BiLm(token_encoder=characters(dim=7, num_highway=0), cell_size=CELLS, num_layers=1)
    assert [name for name in shapes_of(bilm) if not name.startswith("RNN")] == [
        "char_embed",
        "CNN/W_cnn_0",
        "CNN/b_cnn_0",
        "CNN/W_cnn_1",
        "CNN/b_cnn_1",
    ]


def test_the_tensors_of_a_model_of_words() -> None:
    bilm = BiLm(token_encoder=words(), cell_size=DIM, num_layers=3)
    assert shapes_of(bilm) == {"embedding": (9, DIM), **lstm_shapes(3, DIM, DIM)}


@pytest.mark.parametrize("encoder", [characters, words])
def test_every_parameter_is_in_one_tensor(encoder: Callable[[], TokenEncoder]) -> None:
    bilm = BiLm(token_encoder=encoder(), cell_size=CELLS)
    places = {official_place(name)[0] for name, _ in bilm.named_parameters()}
    assert places == set(shapes_of(bilm))


@pytest.mark.parametrize("encoder", [characters, words])
def test_what_is_loaded_comes_out_again(encoder: Callable[[], TokenEncoder]) -> None:
    bilm = BiLm(token_encoder=encoder(), cell_size=CELLS)
    tensors = {name: numbered(shape) for name, shape in shapes_of(bilm).items()}
    load_tensors(bilm, tensors)
    out = tensors_of(bilm)
    assert list(out) == list(tensors)
    assert all(numpy.array_equal(out[name], tensors[name]) for name in tensors)
    assert all(tensor.flags.c_contiguous for tensor in out.values())


def test_each_number_has_its_place() -> None:
    bilm = BiLm(token_encoder=characters(), cell_size=CELLS)
    tensors = {name: numbered(shape) for name, shape in shapes_of(bilm).items()}
    load_tensors(bilm, tensors)
    ours = {name: parameter.detach().numpy() for name, parameter in bilm.named_parameters()}

    embedding = ours["token_encoder.convolution.embedding.weight"]
    assert not embedding[0].any()  # no word at all
    assert numpy.array_equal(embedding[1 + ord("q")], tensors["char_embed"][ord("q")])

    filters = ours["token_encoder.convolution.convolutions.1.weight"]
    place, part, number = 2, 1, 4
    assert filters[number, place * 3 + part] == tensors["CNN/W_cnn_1"][0, place, part, number]

    highway = ours["token_encoder.highways.0.carry.weight"]
    assert highway[5, 2] == tensors["CNN_high_0/W_carry"][2, 5]
    projection = ours["token_encoder.projection.weight"]
    assert projection[3, 6] == tensors["CNN_proj/W_proj"][6, 3]

    # Inputs above outputs; the gates in the same order.
    stacked, layer = tensors[f"{CELL}/W_0"], "right_to_left.layers.0"
    assert ours[f"{layer}.input_weight"][19, 3] == stacked[3, 19]
    assert ours[f"{layer}.recurrent_weight"][19, 3] == stacked[DIM + 3, 19]
    assert ours[f"{layer}.bias"][19] == tensors[f"{CELL}/B"][19]
    assert ours[f"{layer}.projection_weight"][3, 6] == tensors[f"{CELL}/W_P_0"][6, 3]


def test_a_word_is_one_row_further() -> None:
    bilm = BiLm(token_encoder=words(), cell_size=CELLS)
    tensors = {name: numbered(shape) for name, shape in shapes_of(bilm).items()}
    load_tensors(bilm, tensors)
    embedding = bilm.token_encoder.embedding.weight.detach().numpy()
    assert not embedding[0].any()
    assert numpy.array_equal(embedding[1:], tensors["embedding"])


def test_tensors_are_float32_whatever_the_parameters_are() -> None:
    for dtype in (torch.float64, torch.bfloat16):
        bilm = BiLm(token_encoder=characters(), cell_size=CELLS).to(dtype)
        assert {str(one.dtype) for one in tensors_of(bilm).values()} == {"float32"}


def test_tensors_stay_as_they_were_when_the_bilm_changes() -> None:
    bilm = BiLm(token_encoder=characters(), cell_size=CELLS)
    tensors = tensors_of(bilm)
    before = {name: tensor.copy() for name, tensor in tensors.items()}
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.add_(1.0)
    assert all(numpy.array_equal(tensors[name], before[name]) for name in before)


def test_loading_makes_no_gradients_and_forgets_what_was_computed() -> None:
    bilm = RESIDUAL.read().requires_grad_(False)
    ids = [character_batch(BATCHES[1])]
    bilm.state_memory.state = "reset"
    before = layers_of(bilm, ids)[0]
    tensors = RESIDUAL.tensors()
    for name, tensor in tensors.items():
        load_tensors(bilm, {**tensors, name: tensor + 0.1})
        assert abs(layers_of(bilm, ids)[0] - before).max() > 1e-3, name
    load_tensors(bilm, tensors)
    assert numpy.array_equal(layers_of(bilm, ids)[0], before)
    assert not any(parameter.requires_grad for parameter in bilm.parameters())


def test_a_token_encoder_of_someone_else_has_no_official_form() -> None:
    bilm = BiLm(token_encoder=LetterEncoder(DIM), cell_size=CELLS)
    with pytest.raises(ValueError, match="`char_cnn` or `word`, .* but got LetterEncoder"):
        OfficialBlueprint.of(bilm)


@pytest.mark.parametrize(
    "name", ["char_embed", "CNN/W_cnn_1", "CNN_high_1/b_carry", "CNN_proj/W_proj", f"{CELL}/W_P_0"]
)
def test_a_tensor_of_another_shape_is_an_error(name: str, tmp_path: Path) -> None:
    tensor = RESIDUAL.tensors()[name]
    for other in (tensor[..., 1:], tensor[None], tensor.sum()):
        files = with_tensors(RESIDUAL, tmp_path, replacing(name, other))
        assert reading_error(files) == (
            f"{files.weights}: expected {name} to have the shape {tensor.shape}, by the sizes in "
            f"{files.options}, but it has the shape {other.shape}"
        )


@pytest.mark.parametrize("name", ["char_embed", "CNN/b_cnn_3", f"{CELL}/W_0", f"{CELL}/W_P_0"])
def test_a_missing_tensor_is_an_error(name: str, tmp_path: Path) -> None:
    def drop(file: h5py.File) -> None:
        del file[name]

    files = with_tensors(RESIDUAL, tmp_path, drop)
    message = reading_error(files)
    shape = RESIDUAL.tensors()[name].shape
    assert f"{files.weights}: the tensor {name}, of the shape {shape}, is missing" in message
    assert f"which {files.options} asks for" in message and "'CNN/W_cnn_0'" in message


@pytest.mark.parametrize("name", ["extra", "CNN/W_cnn_4", "embedding", "softmax/W"])
def test_a_tensor_that_is_left_over_is_an_error(name: str, tmp_path: Path) -> None:
    files = with_tensors(RESIDUAL, tmp_path, replacing(name, numpy.zeros((7, 6))))
    assert reading_error(files) == (
        f"{files.weights}: the tensor {name}, of the shape (7, 6), is left over: the biLM of "
        f"{files.options} has none of that name"
    )


@pytest.mark.parametrize(
    "key, value, tensor, what",
    [
        ("lstm__dim", 12, "W_0", "expected RNN_0"),
        ("lstm__projection_dim", 5, "CNN_proj/W_proj", "expected"),
        ("lstm__projection_dim", 11, "CNN_proj/W_proj", "expected"),
        ("lstm__n_layers", 1, "RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/B", "left over"),
        ("lstm__n_layers", 3, "RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/W_0", "missing"),
        ("char_cnn__embedding", {"dim": 5}, "char_embed", "expected"),
        ("char_cnn__filters", [[1, 3], [2, 4], [3, 5]], "CNN_high_0/W_transform", "expected"),
        ("char_cnn__filters", [[1, 3], [2, 4], [5, 5], [3, 4]], "CNN/W_cnn_2", "expected"),
        ("char_cnn__n_highway", 1, "CNN_high_1/W_carry", "left over"),
        ("char_cnn__n_highway", 3, "CNN_high_2/W_transform", "missing"),
    ],
    ids=str,
)
def test_options_of_another_bilm_are_an_error(
    key: str, value: Any, tensor: str, what: str, tmp_path: Path
) -> None:
    files = with_options(RESIDUAL, tmp_path, **{key: value})
    message = reading_error(files)
    assert message.startswith(f"{files.weights}: ") and str(files.options) in message
    assert tensor in message and what in message


def test_a_table_without_both_marks_is_an_error(tmp_path: Path) -> None:
    def leave_one_word(file: h5py.File) -> None:
        for name in set(file) - {"RNN_0", "RNN_1"}:
            del file[name]
        file["embedding"] = numpy.zeros((1, 6), "float32")

    files = with_tensors(RESIDUAL, tmp_path, leave_one_word)
    record = {"lstm": RESIDUAL.record()["lstm"]}
    files.options.write_text(json.dumps(record), encoding="utf-8")
    assert "`embedding`" in reading_error(files)
