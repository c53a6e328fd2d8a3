import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

import h5py
import numpy
import pytest
import torch
from allennlp.common import file_utils
from allennlp.common.checks import ConfigurationError
from allennlp.modules.elmo import _ElmoBiLm

from elmo_scratch.alphabet import character_ids
from elmo_scratch.interop.official import files as official_files
from elmo_scratch.interop.official import read_official_bilm, read_official_options
from tests import FIXTURES_ROOT
from tests.interop.official.reference import (
    BATCHES,
    ELMO,
    MODELS,
    PROGRAM,
    RESIDUAL,
    OfficialFiles,
    assert_layers_close,
    character_batch,
    character_batches,
    computed_layers,
    layers_of,
    reading_error,
    stored_layers,
    with_options,
    with_tensors,
)

each_model = pytest.mark.parametrize("name", MODELS)


@each_model
def test_words_are_spelled_as_in_the_reference(name: str) -> None:
    max_characters = MODELS[name].record()["char_cnn"]["max_characters_per_token"]
    with h5py.File(ELMO / name / "layers.hdf5") as file:
        for number, batch in enumerate(BATCHES):
            for row, sentence in zip(file[f"{number}/ids"], batch):
                spelled = [character_ids(word, max_characters) for word in sentence]
                assert row[: len(sentence)].tolist() == spelled
                assert not row[len(sentence) :].any()


@each_model
@pytest.mark.parametrize("way", ["with gradients", "without gradients", "frozen"])
def test_every_layer_is_that_of_the_reference(name: str, way: str) -> None:
    # These are three ways through the code.
    bilm = MODELS[name].read().requires_grad_(way != "frozen")
    with torch.set_grad_enabled(way == "with gradients"):
        layers = layers_of(bilm, character_batches(bilm))
    assert_layers_close(layers, stored_layers(name), atol=1e-6)


@each_model
def test_in_double_precision_only_the_rounding_of_the_reference_is_left(name: str) -> None:
    bilm = MODELS[name].read().double()
    layers = layers_of(bilm, character_batches(bilm))
    for one, other in zip(layers, stored_layers(name)):
        assert one.dtype == numpy.float64
        assert numpy.allclose(one, other, rtol=2.0**-24, atol=1e-14)
    assert_layers_close(layers, computed_layers(MODELS[name], BATCHES), atol=1e-13)


@each_model
def test_where_no_state_is_carried_each_batch_is_as_if_it_came_first(name: str) -> None:
    bilm = MODELS[name].read(state="reset")
    first = [computed_layers(MODELS[name], [batch])[0] for batch in BATCHES]
    layers = layers_of(bilm, character_batches(bilm))
    assert_layers_close(layers, first)
    assert abs(layers[1] - stored_layers(name)[1]).max() > 0.1


def test_allennlp_computes_the_same() -> None:
    theirs, ours = _ElmoBiLm(str(RESIDUAL.options), str(RESIDUAL.weights)), RESIDUAL.read()
    # Of several sizes: a row that a batch doesn't have keeps its state.
    batches = [*BATCHES, BATCHES[0][:1], BATCHES[1][:2], [*BATCHES[2], *BATCHES[0]], BATCHES[1]]
    ids = [character_batch(batch) for batch in batches]
    activations = [torch.stack(theirs(one)["activations"]).detach().numpy() for one in ids]
    assert_layers_close(layers_of(ours, ids), activations, atol=1e-5)
    assert_layers_close(activations[:3], stored_layers("residual"), atol=1e-5)


def test_the_reference_is_what_its_program_computes(tmp_path: Path) -> None:
    PROGRAM.main(tmp_path)
    for name, files in MODELS.items():
        again = OfficialFiles.of(tmp_path / name)
        assert again.record() == files.record()
        written, tensors = again.tensors(), files.tensors()
        assert list(written) == list(tensors)
        assert all(numpy.array_equal(written[key], tensors[key]) for key in tensors)
        with (
            h5py.File(tmp_path / name / "layers.hdf5") as one,
            h5py.File(ELMO / name / "layers.hdf5") as other,
        ):
            for key in [f"{batch}/{key}" for batch in other for key in other[batch]]:
                assert numpy.allclose(one[key], other[key], rtol=0, atol=1e-6), key


@pytest.mark.parametrize(
    "key, value",
    [
        ("lstm__cell_clip", None),
        ("lstm__cell_clip", 1.0),
        ("lstm__proj_clip", None),
        ("lstm__proj_clip", 0.5),
        ("lstm__use_skip_connections", False),
        ("char_cnn__activation", "tanh"),
        ("char_cnn__max_characters_per_token", 20),
    ],
)
def test_the_reference_knows_every_setting_from_its_opposite(
    key: str, value: Any, tmp_path: Path
) -> None:
    changed = with_options(RESIDUAL, tmp_path, **{key: value})
    bilm = changed.read()
    layers = layers_of(bilm, character_batches(bilm))
    assert max(abs(a - b).max() for a, b in zip(layers, stored_layers("residual"))) > 0.1
    assert_layers_close(layers, computed_layers(changed, BATCHES), atol=1e-5)


def test_it_is_ready_to_use() -> None:
    bilm = RESIDUAL.read()
    assert not any(module.training for module in bilm.modules())
    assert bilm.left_to_right.dropout.p == 0.0
    assert bilm.state_memory.state == "carry"
    assert {parameter.dtype for parameter in bilm.parameters()} == {torch.float32}
    bilm = RESIDUAL.read(state="warm", matmul_dtype="bfloat16")
    assert bilm.state_memory.state == "warm"
    assert bilm.left_to_right.layers[0].matmul_dtype_for(torch.zeros(1)) == torch.bfloat16


@pytest.mark.parametrize("dtype", ["float16", "float64", ">f4"])
def test_numbers_of_any_precision_are_read(dtype: str, tmp_path: Path) -> None:
    def change(file: h5py.File) -> None:
        numbers = file["char_embed"][...].astype(dtype)
        del file["char_embed"]
        file.create_dataset("char_embed", data=numbers, compression="gzip")

    read = with_tensors(RESIDUAL, tmp_path, change).read().token_encoder.convolution.embedding
    expected = RESIDUAL.tensors()["char_embed"].astype(dtype).astype("float32")
    assert torch.equal(read.weight[1:], torch.from_numpy(expected))


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the fixture `residual` on a server of our own."""
    monkeypatch.setattr(file_utils, "CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(ELMO / "residual"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_files_may_be_addresses(server: str, tmp_path: Path) -> None:
    bilm = read_official_bilm(f"{server}/options.json", f"{server}/weights.hdf5")
    assert_layers_close(layers_of(bilm, character_batches(bilm)), stored_layers("residual"))
    assert any((tmp_path / "cache").iterdir())


def test_an_address_at_which_there_is_nothing_is_an_error(server: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{server}/nothing.json: there is no such file$"):
        read_official_options(f"{server}/nothing.json")


@pytest.mark.parametrize(
    "form", [str, Path, lambda path: f"file://{path}"], ids=["string", "path", "address"]
)
def test_files_may_be_paths(form: Callable[[Path], Any]) -> None:
    bilm = read_official_bilm(form(RESIDUAL.options), form(RESIDUAL.weights))
    expected = RESIDUAL.read().state_dict()
    assert all(torch.equal(expected[name], tensor) for name, tensor in bilm.state_dict().items())
    assert read_official_options(form(RESIDUAL.options)).lstm.dim == 11


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    for files in (RESIDUAL._replace(weights=nothing), RESIDUAL._replace(options=nothing)):
        assert reading_error(files) == f"{nothing}: there is no such file"


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    for files in (RESIDUAL._replace(weights=tmp_path), RESIDUAL._replace(options=tmp_path)):
        assert reading_error(files) == f"{tmp_path}: expected a file, but it is a folder"


def test_options_in_place_of_weights_are_an_error() -> None:
    swapped = OfficialFiles(RESIDUAL.weights, RESIDUAL.options)
    assert reading_error(swapped).startswith(
        f"{RESIDUAL.weights}: expected the options of a biLM as"
    )
    for text in (RESIDUAL.options, FIXTURES_ROOT / "bad" / "empty.txt", ELMO / "compute.py"):
        message = reading_error(RESIDUAL._replace(weights=text))
        assert message.startswith(f"{text}: expected the weights of a biLM in an HDF5 file, but it")


def test_options_that_make_no_sense_name_their_file(tmp_path: Path) -> None:
    files = with_options(RESIDUAL, tmp_path, lstm__dim="many")
    assert reading_error(files).startswith(
        f"{files.options}: expected `dim` of `lstm` to be a whole"
    )


@pytest.mark.parametrize(
    "changes, count",
    [
        ({"lstm__n_layers": 10**6}, "`n_layers` asks for 1000000"),
        ({"char_cnn__n_highway": 10**9}, f"`n_highway` asks for {10**9}"),
        ({"char_cnn__filters": [[1, 1]] * 10_000}, "`filters` asks for 10000"),
    ],
    ids=["layers", "highways", "filters"],
)
def test_more_parts_than_there_are_tensors_are_an_error_at_once(
    changes: Dict[str, Any], count: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A plan of so many would take minutes, or never be made.
    monkeypatch.setattr(official_files, "build_bilm", pytest.fail)
    files = with_options(RESIDUAL, tmp_path, **changes)
    held = len(RESIDUAL.tensors())
    assert reading_error(files).startswith(
        f"{files.weights}: it holds {held} tensors, which is too few for {files.options}, where "
        f"{count} "
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"lstm__dim": 2**62},
        {"lstm__dim": 10**30},
        {"char_cnn__embedding__dim": 2**60},
        {"char_cnn__filters": [[1, 10**30]]},
    ],
    ids=str,
)
def test_sizes_that_no_tensor_has_are_an_error(changes: Dict[str, Any], tmp_path: Path) -> None:
    files = with_options(RESIDUAL, tmp_path, **changes)
    assert reading_error(files).startswith(f"{files.options}: expected `")


def test_sizes_that_the_file_has_no_numbers_for_are_an_error(tmp_path: Path) -> None:
    files = with_options(RESIDUAL, tmp_path, lstm__dim=2**31 - 1)
    assert f", {4 * (2**31 - 1)}), by the sizes in {files.options}" in reading_error(files)


@pytest.mark.parametrize("setting, value", [("state", "foo"), ("matmul_dtype", "float16")])
def test_a_setting_that_does_not_exist_is_not_the_files_fault(setting: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"`{setting}` among .* but got '{value}'") as raised:
        RESIDUAL.read(**{setting: value})
    assert "download" not in str(raised.value)
