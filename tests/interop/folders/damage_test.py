"""Folders that are damaged, of another kind, or made to do harm: each is one error."""

import json
import struct
import sys
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from safetensors.torch import load_file, save_file

from elmo_scratch import read_bilm
from elmo_scratch.interop import export_model_folder
from tests import PROJECT_ROOT

WORDS = PROJECT_ROOT / "tests" / "golden" / "words" / "model.tar.gz"
BIAS = "bilm.left_to_right.layers.0.bias"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "folder"
    export_model_folder(WORDS, folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A folder to spoil."""
    (tmp_path / "folder").mkdir()
    for file in whole.iterdir():
        (tmp_path / "folder" / file.name).write_bytes(file.read_bytes())
    return tmp_path / "folder"


def fails(folder: Path) -> str:
    with pytest.raises(ConfigurationError) as error:
        read_bilm(folder, with_softmax=True)
    assert "\n" not in error.value.message
    assert error.value.message.startswith(str(folder))
    return error.value.message.removeprefix(f"{folder}/")


def change_tensors(folder: Path, change: Callable[[Dict[str, torch.Tensor]], Any]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def change_header(folder: Path, change: Callable[[Dict[str, Any]], Any]) -> None:
    """Writes another header before the same numbers."""
    path = folder / "model.safetensors"
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    change(header)
    written = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(written)) + written + content[8 + length :])


def change_config(folder: Path, change: Callable[[Dict[str, Any]], Any]) -> None:
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("end", [-3, 1000, 5, 0])
def test_a_truncated_file_is_an_error(end: int, folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:end])
    message = fails(folder)
    assert message.startswith("model.safetensors: expected tensors in the format of safetensors")
    assert message.endswith("Copy or download the file again.")


def lie(**changes: Any) -> Callable[[Dict[str, Any]], Any]:
    return lambda header: header[BIAS].update(changes)


@pytest.mark.parametrize(
    "change",
    [
        lie(shape=[2**62, 2**62]),
        lie(shape=[25]),
        lie(data_offsets=[4, 100]),
        lie(data_offsets=[2**40, 2**40 + 96]),
        lie(dtype="F64"),
        lie(dtype="PICKLE"),
        lambda header: header.update(more={"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}),
    ],
    ids=["huge", "shape", "overlap", "outside", "type", "unknown type", "more"],
)
def test_a_header_that_lies_is_an_error(
    change: Callable[[Dict[str, Any]], Any], folder: Path
) -> None:
    change_header(folder, change)
    assert "model.safetensors: expected tensors in the format of" in fails(folder)


def test_a_tensor_of_another_name_shape_type_or_content_is_an_error(folder: Path) -> None:
    change_tensors(folder, lambda tensors: tensors[BIAS].fill_(float("inf")))
    assert f"model.safetensors: {BIAS} holds numbers that are not finite" in fails(folder)
    change_tensors(folder, lambda tensors: tensors.update({BIAS: tensors[BIAS].half()}))
    assert f"expected the tensor {BIAS} to be of the type F32, but it is of the type F16" in fails(
        folder
    )
    change_tensors(folder, lambda tensors: tensors.update({BIAS: torch.zeros(4, 6)}))
    assert f"expected the tensor {BIAS} to have the shape (24,), but it has the shape (4, 6)" in (
        fails(folder)
    )
    change_tensors(folder, lambda tensors: tensors.pop(BIAS))
    assert fails(folder) == (
        f"model.safetensors: the tensor {BIAS} is missing. Do config.json and model.safetensors "
        "come from the same model?"
    )
    change_tensors(folder, lambda tensors: tensors.update({"bilm.more": torch.zeros(1)}))
    assert "model.safetensors: the tensor bilm.more is left over" in fails(folder)


def test_a_softmax_that_diverged_is_an_error(folder: Path) -> None:
    change_tensors(folder, lambda tensors: tensors["softmax.bias"].fill_(float("nan")))
    assert "model.safetensors: softmax.bias holds numbers that are not finite" in fails(folder)


@pytest.mark.parametrize(
    "change, told",
    [
        (
            lambda c: c.update(format_version=3),
            "`format_version` 1 or 2, but it is 3: a later release",
        ),
        (lambda c: c.update(model_type="bert"), "`model_type` is 'elmo_scratch', but it is 'bert'"),
        (lambda c: c.update(more=1), "the key `more` is unknown"),
        (lambda c: c.pop("bilm"), "the key `bilm` is missing"),
        (lambda c: c["bilm"].update(more=1), "the key `more` of `bilm` is unknown"),
        (lambda c: c["bilm"].update(cell_size=-1), "no biLM: expected `cell_size` of 1 or more"),
        (lambda c: c["bilm"].update(cell_size=7), "expected the tensor .* to have the shape"),
        (
            lambda c: c["bilm"].update(cell_size=10**30),
            "`cell_size` of `bilm` to be a number of at",
        ),
        (lambda c: c["bilm"].update(cell_size="large"), "its config describes no biLM"),
        (lambda c: c["bilm"].update(num_layers=10**9), "`num_layers` asks for 1000000000 layers"),
        (
            lambda c: c["bilm"].update(state={"a": 1}),
            "expected `state` of `bilm` to be a number of",
        ),
        (lambda c: c["bilm"].update(state="cold"), "expected a `state` among carry, reset, warm"),
        (lambda c: c["bilm"].update(use_skip_connections="no"), "to be true or false, but got"),
        (lambda c: c["bilm"].update(locked_dropout="no"), "to be true or false, but got"),
        (lambda c: c["bilm"]["token_encoder"].update(sparse=0), "to be true or false, but got"),
        (lambda c: c["bilm"].update(word_dropout="much"), "its config describes no biLM"),
        (lambda c: c["bilm"].update(token_encoder="word"), "expected `token_encoder` to be a JSON"),
        (lambda c: c["softmax"].update(type="adaptive", cutoffs=[1] * 999), "fewer tensors than"),
        (lambda c: c["softmax"].update(type="sampled", num_samples=99), "`softmax` describes none"),
        (lambda c: c.update(softmax=None), "the tensor softmax.bias is left over"),
        (
            lambda c: c.update(vocabulary=None),
            "expected the block `vocabulary`, as there are",
        ),
        (lambda c: c["tokens"].update(unit="characters"), '`unit` of `tokens` to be "words"'),
        (lambda c: c.update(elmo={"dropout": 7}), "expected `dropout` of `elmo` to be a number"),
        (
            lambda c: c.update(
                elmo={
                    "num_output_representations": 10**9,
                    "dropout": 0,
                    "do_layer_norm": False,
                    "keep_sentence_boundaries": False,
                }
            ),
            "at most as many `num_output_representations` as there are tensors",
        ),
        (
            lambda c: c.update(
                format_version=2,
                dtype="float32",
                elmo={
                    "num_output_representations": 1,
                    "dropout": 0,
                    "do_layer_norm": False,
                    "keep_sentence_boundaries": False,
                    "fixed": "0.gamma",
                },
            ),
            "expected `fixed` of `elmo` to be a list of the names of weights",
        ),
    ],
)
def test_a_config_that_makes_no_sense_is_an_error(
    change: Callable[[Dict[str, Any]], Any], told: str, folder: Path
) -> None:
    change_config(folder, change)
    with pytest.raises(ConfigurationError, match=told) as error:
        read_bilm(folder)
    assert "\n" not in error.value.message and str(folder) in error.value.message


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "\xff", '{"model_type": NaN}', '{"model_type": ' + "[" * 10**5, " " * 2**21],
    ids=["empty", "list", "letter", "nan", "deep", "large"],
)
def test_a_config_that_is_no_json_object_is_an_error(text: str, folder: Path) -> None:
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    assert fails(folder).startswith("config.json: expected the")


@pytest.mark.parametrize("place", ["token_encoder", "softmax"])
def test_nothing_that_a_config_names_is_imported(
    place: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spy_of_folders.py").write_text("class Spy: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    named = {"type": "spy_of_folders.Spy"}

    def change(config: Dict[str, Any]) -> None:
        (config["bilm"] if place == "token_encoder" else config)[place] = named

    change_config(folder, change)
    assert f"expected the `type` of `{place}` to be one of" in fails(folder)
    assert "spy_of_folders" not in sys.modules
    # AllenNLP would load another archive in place of a setting.
    change_config(folder, lambda config: named.update({"type": "word"}))
    pretrained = {"_pretrained": {"archive_file": "http://example.org/model.tar.gz"}}
    change_config(folder, lambda config: config["bilm"].update(token_encoder=pretrained))
    assert "expected the `type` of `token_encoder` to be one of" in fails(folder)


def spoil_words(folder: Path, change: Callable[[str], str]) -> None:
    path = folder / "vocab.txt"
    path.write_text(change(path.read_text("utf-8")), "utf-8")


@pytest.mark.parametrize(
    "change, told",
    [
        (lambda text: text + "more\n", "vocab.txt: expected 59 lines with a word each"),
        (lambda text: text.rstrip("\n"), "vocab.txt: expected 59 lines with a word each"),
        (
            lambda text: text.replace("the\n", "a\n", 1),
            "word 'a' is in line 3, but it is in",
        ),
        (lambda text: text.replace("</S>\n", "x\n"), "the word '</S>', which a biLM needs"),
        (lambda text: text.replace("@@UNKNOWN@@", "x", 1), "the word '@@UNKNOWN@@', which a biLM"),
    ],
    ids=["more", "cut", "twice", "no end", "no unknown word"],
)
def test_a_vocabulary_that_does_not_fit_is_an_error(
    change: Callable[[str], str], told: str, folder: Path
) -> None:
    spoil_words(folder, change)
    message = fails(folder)
    assert message.startswith("vocab.txt: ") and told.removeprefix("vocab.txt: ") in message


def test_a_vocabulary_of_other_bytes_is_an_error(folder: Path) -> None:
    (folder / "vocab.txt").write_bytes(b"\xff\n")
    assert fails(folder).startswith("vocab.txt: expected the words of the biLM, but they can't")


def test_a_vocabulary_and_a_config_of_another_size_are_an_error(folder: Path) -> None:
    """They fit each other, and not the weights."""
    spoil_words(folder, lambda text: text + "more\n")
    change_config(folder, lambda config: config["vocabulary"].update(num_words=61))
    assert "embedding.weight to have the shape (61, 4), but it has the shape (60, 4)" in fails(
        folder
    )


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt"])
def test_a_missing_file_is_an_error(name: str, folder: Path) -> None:
    (folder / name).unlink()
    assert fails(folder).startswith(f"{name}: ")


def test_a_folder_of_another_library_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["BertModel"], "model_type": "bert"}')
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ConfigurationError, match="but it is 'bert'. Such folders are written by"):
        read_bilm(tmp_path)
