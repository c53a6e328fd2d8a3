import errno
import os
from copy import deepcopy
from pathlib import Path
from typing import Any, Dict, List, Sequence

import h5py
import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.modules.elmo import Elmo, _ElmoBiLm

from elmo_scratch.interop.official import write_official_bilm
from elmo_scratch.interop.official.options import Options
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import WordEncoder
from tests.interop.full_disk import has_such_a_limit, printed_by
from tests.interop.official.reference import (
    BATCHES,
    MODELS,
    RESIDUAL,
    OfficialFiles,
    Sentence,
    assert_layers_close,
    character_batches,
    computed_layers,
    layers_of,
    reading_error,
    replacing,
    with_tensors,
    word_batch,
)
from tests.modules.tiny_bilms import LetterEncoder

CHARACTERS: Dict[str, Any] = {
    "type": "char_cnn",
    "dim": 9,
    "filters": [[1, 3], [2, 4], [4, 7]],
    "character_dim": 5,
    "num_highway": 3,
}
FORMS: Dict[str, Dict[str, Any]] = {
    "as released": {"token_encoder": CHARACTERS, "cell_size": 15},
    "four layers": {"token_encoder": CHARACTERS, "cell_size": 13, "num_layers": 4},
    "never clipped": {
        "token_encoder": {**CHARACTERS, "num_highway": 1},
        "cell_size": 11,
        "cell_clip": None,
        "projection_clip": None,
    },
    "no projected filters": {
        "token_encoder": {**CHARACTERS, "dim": 14, "num_highway": 0},
        "cell_size": 17,
    },
    "no projected cells": {
        "token_encoder": {**CHARACTERS, "activation": "tanh", "max_characters_per_token": 12},
        "cell_size": 9,
        "cell_clip": 0.5,
        "num_layers": 1,
        "use_skip_connections": False,
    },
    "nothing projected": {
        "token_encoder": {**CHARACTERS, "dim": 14},
        "cell_size": 14,
        "cell_clip": 1.5,
        "projection_clip": 0.1,
    },
    "one layer": {
        "token_encoder": {**CHARACTERS, "activation": "tanh"},
        "cell_size": 12,
        "num_layers": 1,
        "use_skip_connections": False,
    },
    "no highway": {"token_encoder": {**CHARACTERS, "num_highway": 0}, "cell_size": 10},
    "words": {"token_encoder": {"type": "word", "dim": 5}, "cell_size": 8, "num_layers": 3},
}
"""BiLMs of other sizes than the fixtures'."""

READ_BY_ALLENNLP = [
    *("as released", "four layers", "never clipped", "no projected filters", "nothing projected"),
    *("one layer", "no highway"),
]
"""It needs residual connections and 50 characters."""

WORD_BATCHES: List[List[List[int]]] = [[[2, 3, 4, 9], []], [[5], [0, 1, 9, 8, 7]]]
"""For a model of words: their rows in `embedding`."""


def built(config: Dict[str, Any]) -> BiLm:
    """A biLM of a config, whose biases are random too."""
    torch.manual_seed(13)
    params = Params(deepcopy({"dropout": 0.0, "state": "carry", **config}))
    sizes: Dict[str, Any] = {"num_words": 11, "begin_id": 1, "end_id": 2}
    bilm = BiLm.from_params(params, **sizes)
    with torch.no_grad():
        for name, parameter in bilm.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.5)
    return bilm.eval()


def batches_of(bilm: BiLm) -> Sequence[Sequence[Sentence]]:
    return WORD_BATCHES if isinstance(bilm.token_encoder, WordEncoder) else BATCHES


def ids_of(bilm: BiLm) -> List[torch.Tensor]:
    if isinstance(bilm.token_encoder, WordEncoder):
        return [word_batch(batch) for batch in WORD_BATCHES]
    return character_batches(bilm)


def written(bilm: BiLm, folder: Path) -> OfficialFiles:
    write_official_bilm(bilm, folder)
    return OfficialFiles.of(folder)


def contents(folder: Path) -> Dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


each_form = pytest.mark.parametrize("form", FORMS)


@pytest.mark.parametrize("name", MODELS)
def test_what_was_read_is_written_to_the_bit(name: str, tmp_path: Path) -> None:
    files = written(MODELS[name].read(), tmp_path)
    before, after = MODELS[name].tensors(), files.tensors()
    assert set(after) == set(before)
    for key in before:
        assert after[key].dtype == before[key].dtype == numpy.float32
        assert after[key].tobytes() == before[key].tobytes(), key
    assert Options.from_json(files.options.read_bytes(), "after") == Options.from_json(
        MODELS[name].options.read_bytes(), "before"
    )


def test_a_released_models_options_are_written_as_they_were(tmp_path: Path) -> None:
    assert written(RESIDUAL.read(), tmp_path).record() == RESIDUAL.record()


def test_a_trainings_261_characters_become_262(tmp_path: Path) -> None:
    files = written(MODELS["plain"].read(), tmp_path)
    assert MODELS["plain"].record()["char_cnn"]["n_characters"] == 261
    assert files.record()["char_cnn"]["n_characters"] == 262
    assert len(files.tensors()["char_embed"]) == 261


@each_form
def test_what_was_written_is_read_to_the_bit(form: str, tmp_path: Path) -> None:
    bilm = built(FORMS[form])
    files = written(bilm, tmp_path / "official")
    again = files.read()
    before, after = bilm.state_dict(), again.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert Options.of(again) == Options.of(bilm)
    for one, other in zip(layers_of(bilm, ids_of(bilm)), layers_of(again, ids_of(again))):
        assert numpy.array_equal(one, other)
    assert contents(written(again, tmp_path / "again").options.parent) == contents(
        files.options.parent
    )


@each_form
def test_another_implementation_computes_the_same_from_it(form: str, tmp_path: Path) -> None:
    bilm = built(FORMS[form])
    expected = computed_layers(written(bilm, tmp_path), batches_of(bilm))
    assert_layers_close(layers_of(bilm, ids_of(bilm)), expected, atol=1e-5)
    assert max(abs(layers).max() for layers in expected) < 100


@pytest.mark.parametrize("form", READ_BY_ALLENNLP)
def test_allennlp_computes_the_same_layers_from_it(form: str, tmp_path: Path) -> None:
    bilm = built(FORMS[form])
    files = written(bilm, tmp_path)
    theirs = _ElmoBiLm(str(files.options), str(files.weights))
    expected = [torch.stack(theirs(ids)["activations"]).detach().numpy() for ids in ids_of(bilm)]
    assert_layers_close(layers_of(bilm, ids_of(bilm)), expected, atol=1e-5)


@pytest.mark.parametrize("form", READ_BY_ALLENNLP)
def test_allennlps_elmo_mixes_them(form: str, tmp_path: Path) -> None:
    bilm = built(FORMS[form])
    files = written(bilm, tmp_path)
    elmo = Elmo(str(files.options), str(files.weights), 1, dropout=0.0).eval()
    assert elmo.get_output_dim() == bilm.width
    for ids in ids_of(bilm):
        mask = (ids > 0).any(dim=-1)
        theirs = elmo(ids)
        assert torch.equal(theirs["mask"], mask)
        (mixed,) = theirs["elmo_representations"]
        ours = bilm(ids, mask).layers.mean(dim=0)[:, 1:-1]
        assert torch.allclose(mixed[mask], ours[mask], atol=1e-5)


def identity_projections(files: OfficialFiles) -> Dict[str, numpy.ndarray]:
    tensors = files.tensors().items()
    return {name: one for name, one in tensors if name.endswith(("/W_P_0", "_proj"))}


def test_projections_between_equal_sizes_are_written_as_the_identity(tmp_path: Path) -> None:
    projections = identity_projections(written(built(FORMS["nothing projected"]), tmp_path))
    assert len(projections) == 2 * 2 + 2
    for name, tensor in projections.items():
        assert tensor.dtype == numpy.float32
        expected = numpy.eye(14) if "/W_" in name else numpy.zeros(14)
        assert numpy.array_equal(tensor, expected), name


def test_files_without_the_identity_are_read_to_the_same_bits(tmp_path: Path) -> None:
    bilm = built(FORMS["nothing projected"])
    files = written(bilm, tmp_path)
    names = identity_projections(files)
    with h5py.File(files.weights, "r+") as file:
        for name in names:
            del file[name]
    again = files.read().state_dict()
    assert all(torch.equal(again[name], tensor) for name, tensor in bilm.state_dict().items())


def test_a_projection_between_equal_sizes_that_does_something_is_refused(tmp_path: Path) -> None:
    files = written(built(FORMS["nothing projected"]), tmp_path)
    for name, tensor in identity_projections(files).items():
        changed = with_tensors(files, tmp_path / "changed", replacing(name, tensor + 1))
        message = reading_error(changed)
        assert message.startswith(f"{changed.weights}: expected {name} to change nothing")
        assert message.endswith("If the biLM was trained by bilm-tf, remove it")


def test_ids_of_words_are_their_rows_plus_one_and_the_first_two_rows_are_marks(
    tmp_path: Path,
) -> None:
    bilm = written(built(FORMS["words"]), tmp_path).read()
    (table,) = [one for name, one in OfficialFiles.of(tmp_path).tensors().items() if "emb" in name]
    tokens = bilm(torch.tensor([[5, 10]]), torch.ones(1, 2).bool()).layers[0, 0, :, : bilm.dim]
    assert numpy.array_equal(tokens.detach().numpy(), table[[0, 4, 9, 1]])


def test_settings_are_written_as_options(tmp_path: Path) -> None:
    assert written(built(FORMS["no projected cells"]), tmp_path).record() == {
        "lstm": {
            "use_skip_connections": True,
            "projection_dim": 9,
            "cell_clip": 0.5,
            "proj_clip": 3.0,
            "dim": 9,
            "n_layers": 1,
        },
        "char_cnn": {
            "activation": "tanh",
            "filters": [[1, 3], [2, 4], [4, 7]],
            "n_highway": 3,
            "embedding": {"dim": 5},
            "n_characters": 262,
            "max_characters_per_token": 12,
        },
    }
    assert set(written(built(FORMS["words"]), tmp_path).record()) == {"lstm"}


@pytest.mark.parametrize("num_layers, is_written", [(1, True), (2, False)])
def test_without_a_second_layer_there_is_nothing_to_skip(num_layers: int, is_written: bool) -> None:
    form = {**FORMS["as released"], "num_layers": num_layers, "use_skip_connections": False}
    assert Options.of(built(form)).lstm.use_skip_connections == is_written


def test_weights_in_any_state_are_written_and_left_as_they_are(tmp_path: Path) -> None:
    bilm = built(FORMS["as released"]).train()
    expected = contents(written(bilm, tmp_path / "float32").options.parent)
    bilm.requires_grad_(False)
    assert contents(written(bilm.double(), tmp_path / "float64").options.parent) == expected
    assert bilm.training and {one.dtype for one in bilm.parameters()} == {torch.float64}


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    write_official_bilm(RESIDUAL.read(), str(folder))
    assert set(contents(folder)) == {"options.json", "weights.hdf5"}


def test_older_files_give_way(tmp_path: Path) -> None:
    write_official_bilm(built(FORMS["words"]), tmp_path)
    assert written(RESIDUAL.read(), tmp_path).record() == RESIDUAL.record()
    assert set(OfficialFiles.of(tmp_path).tensors()) == set(RESIDUAL.tensors())
    assert set(contents(tmp_path)) == {"options.json", "weights.hdf5"}


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(ConfigurationError) as raised:
        write_official_bilm(RESIDUAL.read(), path)
    assert str(raised.value).startswith(f"{path}: expected a folder to write to, but there is a")
    assert path.read_text() == "old"


def test_a_file_in_place_of_a_folder_above_it_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(ConfigurationError):
        write_official_bilm(RESIDUAL.read(), tmp_path / "file" / "official")


def test_a_folder_in_place_of_the_weights_leaves_the_older_options(tmp_path: Path) -> None:
    (tmp_path / "weights.hdf5").mkdir()
    (tmp_path / "options.json").write_text("old")
    with pytest.raises((ConfigurationError, OSError)):
        write_official_bilm(RESIDUAL.read(), tmp_path)
    assert (tmp_path / "options.json").read_text() == "old"


def test_marks_elsewhere_among_the_words_have_no_official_form(tmp_path: Path) -> None:
    encoder = WordEncoder(dim=5, num_words=11, begin_id=9, end_id=10)
    with pytest.raises(ValueError):
        write_official_bilm(BiLm(token_encoder=encoder, cell_size=8), tmp_path)


def test_fewer_cells_than_dimensions_have_no_official_form(tmp_path: Path) -> None:
    encoder = WordEncoder(dim=5, num_words=11, begin_id=1, end_id=2)
    with pytest.raises(ValueError):
        write_official_bilm(BiLm(token_encoder=encoder, cell_size=4), tmp_path)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300])
def test_weights_that_diverged_are_not_written(number: float, tmp_path: Path) -> None:
    bilm = built(FORMS["as released"]).double()
    with torch.no_grad():
        bilm.right_to_left.layers[1].bias[3] = number
    with pytest.raises(ValueError, match="right_to_left.layers.1.bias: expected finite numbers"):
        write_official_bilm(bilm, tmp_path / "official")
    assert os.listdir(tmp_path) == []


def full_disk(*_: Any, **__: Any) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    "owner, name", [(h5py.File, "create_dataset"), (h5py, "File"), (Path, "write_text")]
)
def test_a_write_that_fails_leaves_the_older_files(
    owner: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_official_bilm(built(FORMS["words"]), tmp_path)
    before, bilm = contents(tmp_path), RESIDUAL.read()
    monkeypatch.setattr(owner, name, full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_official_bilm(bilm, tmp_path)
    assert contents(tmp_path) == before


FILL_THE_DISK = """
import resource

from elmo_scratch import read_official_bilm, write_official_bilm

bilm = read_official_bilm("options.json", "weights.hdf5")
for limit in (0, 1000, 4000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        write_official_bilm(bilm, "written")
    except OSError as error:
        print(error.errno)
"""


@pytest.mark.exhaustive
@has_such_a_limit
def test_a_full_disk_is_an_error_and_the_process_lives_on(tmp_path: Path) -> None:
    write_official_bilm(RESIDUAL.read(), tmp_path)
    assert printed_by(FILL_THE_DISK, tmp_path) == f"{errno.EFBIG}\n" * 3
    assert os.listdir(tmp_path / "written") == []


def test_a_token_encoder_of_someone_else_has_no_official_form(tmp_path: Path) -> None:
    bilm = BiLm(token_encoder=LetterEncoder(3), cell_size=5)
    with pytest.raises(ValueError, match="expected the token encoder .*, but got LetterEncoder"):
        write_official_bilm(bilm, tmp_path / "official")
    assert os.listdir(tmp_path) == []
