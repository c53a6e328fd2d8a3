import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from elmo_scratch.interop.reading import files_of_folder
from elmo_scratch.search.study import named_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with files."""
    for name in ("a.txt", "b.txt", "layers.lmdb", ".hidden"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names_in(settings: Any) -> List[str]:
    return [str(path) for path in named_files(settings)]


@pytest.mark.parametrize(
    "settings",
    [
        {"x": [{"y": ["b.txt", "nothing.txt"]}, None, 3, "a" * 5000]},
        {"train_data_path": "b.txt"},
        {"model.pretrained_file": ("b.txt",)},
    ],
)
def test_a_file_may_be_named_anywhere(settings: Dict[str, Any], folder: Path) -> None:
    assert names_in(settings) == ["b.txt"]


def test_data_may_be_a_pattern_or_a_list_of_them(folder: Path) -> None:
    assert names_in({"train_data_path": "*.txt"}) == ["a.txt", "b.txt"]
    assert names_in({"vocabulary": {"data_path": ["b*", "a.*"]}}) == ["b.txt", "a.txt"]
    assert names_in({"train_data_path": "*.csv", "test_data_path": "https://a.txt/*"}) == []


def test_other_settings_are_no_patterns(folder: Path) -> None:
    assert names_in({"regularizer": {"regexes": [[".*", "l2"]]}}) == []


def test_what_trainings_write_does_not_count(folder: Path) -> None:
    keep = {"type": "file", "path": "layers.lmdb"}
    assert names_in({"elmo": {"keep_layers": keep}, "path": "a.txt"}) == ["a.txt"]
    assert names_in({"model.elmo.keep_layers": keep}) == []


def test_of_a_training_it_is_what_makes_its_archive(folder: Path) -> None:
    run = folder / "run"
    (run / "vocabulary").mkdir(parents=True)
    for name in ("config.json", "best.th", "metrics.json", "vocabulary/tokens.txt"):
        (run / name).write_text(json.dumps(name), encoding="utf-8")
    assert names_in({"pretrained_file": "run"}) == [
        "run/config.json",
        "run/best.th",
        "run/vocabulary/tokens.txt",
    ]
    assert names_in({"pretrained_file": "."}) == []


def test_of_a_model_folder_and_of_official_files_it_is_what_is_read(folder: Path) -> None:
    names = ["hub/model.safetensors", "hub/config.json", "hub/README.md"]
    for name in [*names, "old/options.json", "old/weights.hdf5"]:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}", encoding="utf-8")
    assert files_of_folder(folder) == []
    assert names_in({"a": "hub", "b": "old"}) == [
        "hub/config.json",
        "hub/model.safetensors",
        "old/options.json",
        "old/weights.hdf5",
    ]


def test_a_home_folder_may_be_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert names_in({"pretrained_file": "~/a.txt"}) == [str(folder / "a.txt")]
    assert names_in({"pretrained_file": "~nobody_of_that_name/a.txt"}) == []
