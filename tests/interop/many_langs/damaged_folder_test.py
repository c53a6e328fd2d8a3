import codecs
import json
import os
import shutil
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop.many_langs import PUBLISHED_NAMES, read_dictionary, read_many_langs
from tests import FIXTURES_ROOT

Tensors = Dict[str, torch.Tensor]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURES_ROOT / "elmo_for_many_langs" / "both", tmp_path / "both"))


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def change_tensors(path: Path, change: Callable[[Tensors], Any]) -> None:
    tensors = torch.load(path, weights_only=True)
    change(tensors)
    torch.save(tensors, path, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize(
    "name", ["config.json", "tiny.json", "word.dic", "char.dic", "encoder.pkl"]
)
def test_a_missing_file_is_named(name: str, folder: Path) -> None:
    (folder / name).unlink()
    with pytest.raises(ConfigurationError, match=f"both.*{name}.*there is no"):
        read_many_langs(folder)


@pytest.mark.parametrize(
    "name, old, new, message",
    [
        ("config.json", "{", "", "config.json: expected .* as JSON"),
        ("config.json", '"config_path"', '"path"', "config.json: the key `config_path` is missing"),
        ("tiny.json", '"elmo"', '"lstm"', 'expected `name` of `encoder` to be "elmo"'),
        ("tiny.json", '"cnn"', '"lstm"', "`char_dim` of `token_embedder` to be 0 where its name"),
        ("tiny.json", '"n_layers": 2', '"n_layers": 1000000000', "`n_layers` .* at most 1000"),
        ("tiny.json", '"dim": 11', '"dim": 7', "`projection_dim` .* to be another number than"),
        ("tiny.json", '"relu"', '"gelu"', '`activation` .* to be "relu" or "tanh"'),
        ("tiny.json", '"char_dim": 3', '"char_dim": 300000000', "char_emb_layer.* the same model"),
        (
            "word.dic",
            "\t7\n",
            "\tseven\n",
            r"word.dic, line 8: expected .* but got 'der\\tse",
        ),
        ("word.dic", "\t7\n", "\t6\n", "word.dic, line 8: expected a number of its own, .* line 7"),
        ("word.dic", "\t7\n", "\t700\n", "word.dic: .* the highest is 700. Is the file whole"),
        ("char.dic", "<eow>", "<end>", "char.dic: expected a line for <eow>"),
    ],
)
def test_what_a_text_file_lacks_is_told(
    name: str, old: str, new: str, message: str, folder: Path
) -> None:
    rewrite(folder / name, old, new)
    with pytest.raises(ConfigurationError, match=message):
        read_many_langs(folder)


def test_a_dictionary_that_was_cut_off_does_not_fit(folder: Path) -> None:
    lines = (folder / "word.dic").read_bytes().splitlines(keepends=True)
    (folder / "word.dic").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(ConfigurationError, match=r"word_emb_layer.* shape \(60, 5\).*\(61, 5\)"):
        read_many_langs(folder)


def test_a_byte_order_mark_is_dropped(folder: Path) -> None:
    expected = read_many_langs(folder).blueprint.word_indexer
    for name in ("word.dic", "char.dic"):
        path = folder / name
        path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    assert read_many_langs(folder).blueprint.word_indexer == expected


def test_a_byte_order_mark_may_be_a_character_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "char.dic"
    path.write_text("\ufeff\t1\na\t0\n\u3000\t2\n", encoding="utf-8")
    assert read_dictionary(path, []) == {"\ufeff": 2, "a": 1, "\u3000": 3}


def test_a_word_that_is_not_utf8_is_named_by_its_line(folder: Path) -> None:
    (folder / "word.dic").write_bytes(b"<oov>\t0\nw\xe9\t1\n")
    with pytest.raises(ConfigurationError, match="word.dic, line 2: expected UTF-8 text"):
        read_many_langs(folder)


NAME = "backward_layer_1.state_projection.weight"


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda tensors: tensors.pop(NAME), f"encoder.pkl: the tensor {NAME}, .* is missing"),
        (lambda tensors: tensors.update(more=torch.ones(2)), "the tensor more, .* is left over"),
        (lambda tensors: tensors[NAME].fill_(float("nan")), f"{NAME} holds numbers that are not"),
        (
            lambda tensors: tensors.update({NAME: torch.ones(7, 11).int()}),
            "float32, but it is torch.int32",
        ),
        (lambda tensors: tensors.update({NAME: torch.ones(7, 11).to_sparse()}), "sparse"),
        # Some bytes that would take a terabyte.
        (
            lambda tensors: tensors.update({NAME: torch.ones(1).expand(9**6, 9**6)}),
            "its tensors would take [0-9]+ bytes, many more than the file has",
        ),
        (lambda tensors: tensors.update(name=3), "something else than tensors with names"),
    ],
)
def test_a_tensor_that_is_wrong_is_named(
    change: Callable[[Tensors], Any], message: str, folder: Path
) -> None:
    change_tensors(folder / "encoder.pkl", change)
    with pytest.raises(ConfigurationError, match=message):
        read_many_langs(folder)


@pytest.mark.parametrize("kept", [0, 1, 40, 700, 2000, -1])
@pytest.mark.parametrize("is_old", [True, False])
def test_weights_that_were_cut_off_are_an_error(kept: int, is_old: bool, folder: Path) -> None:
    path = folder / "encoder.pkl"
    torch.save(torch.load(path, weights_only=True), path, _use_new_zipfile_serialization=not is_old)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ConfigurationError, match="encoder.pkl: .* download may be incomplete"):
        read_many_langs(folder)


@pytest.mark.parametrize("is_old", [True, False])
def test_code_in_the_weights_is_not_run(is_old: bool, folder: Path, tmp_path: Path) -> None:
    class Code:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "run"),)

    path = folder / "token_embedder.pkl"
    torch.save({"weight": Code()}, path, _use_new_zipfile_serialization=not is_old)
    with pytest.raises(ConfigurationError, match="token_embedder.pkl: expected the weights"):
        read_many_langs(folder)
    assert not (tmp_path / "run").exists()


def test_weights_that_lay_on_a_gpu_are_read_on_the_processor(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_many_langs(folder).bilm.state_dict()
    with monkeypatch.context() as patch:
        patch.setattr(torch.serialization, "location_tag", lambda _: "cuda:0")
        change_tensors(folder / "encoder.pkl", lambda tensors: tensors)
    assert b"cuda:0" in (folder / "encoder.pkl").read_bytes()
    after = read_many_langs(folder).bilm.state_dict()
    assert all(torch.equal(before[name], tensor) for name, tensor in after.items())


@pytest.mark.parametrize(
    "named", ["tiny.json", "/etc/tiny.json", "..\\..\\configs\\tiny.json", "configs/../tiny.json"]
)
def test_sizes_are_found_by_their_name_in_the_folder(named: str, folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"config_path": named}))
    assert read_many_langs(folder).bilm.num_layers == 3


@pytest.mark.parametrize("name, has_file", [(PUBLISHED_NAMES[0], False), ("large.json", True)])
def test_no_other_file_is_read_for_the_sizes(
    name: str, has_file: bool, folder: Path, tmp_path: Path
) -> None:
    shutil.move(folder / "tiny.json", tmp_path / name)
    (folder / "config.json").write_text(json.dumps({"config_path": f"../{name}"}))
    expected = "by `config_path` of config.json, but" if has_file else "100.*, by the sizes in cnn_"
    with pytest.raises(ConfigurationError, match=expected):
        read_many_langs(folder)
