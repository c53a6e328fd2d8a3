"""The models that `allennlp elmo` takes by other ways than their two files."""

import shutil
import zipfile
from pathlib import Path
from typing import Callable

import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import LayerFile, named_models
from tests import FIXTURES_ROOT
from tests.commands.conftest import Allennlp

RESIDUAL = FIXTURES_ROOT / "elmo" / "residual"
TOUR = FIXTURES_ROOT / "text" / "tour.txt"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(named_models, "BUCKETS", ("http://127.0.0.1:9/elmo/",) * 2)


@pytest.fixture
def equals_official(allennlp: Allennlp, tmp_path: Path) -> Callable[[str], None]:
    """Checks that a model's vectors are those of the official files in the fixtures."""

    def check(weight_file: str) -> None:
        allennlp("elmo", TOUR, "layers.hdf5", "--all", "--weight-file", weight_file)
        files = ["--options-file", RESIDUAL / "options.json"]
        files += ["--weight-file", RESIDUAL / "weights.hdf5"]
        allennlp("elmo", TOUR, "expected.hdf5", "--all", *files)
        with LayerFile("layers.hdf5") as layers, LayerFile("expected.hdf5") as expected:
            assert layers.facts == expected.facts
            for line in range(len(expected)):
                assert numpy.array_equal(layers[line], expected[line])

    return check


def test_a_name(
    equals_official: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(RESIDUAL, tmp_path / "models" / "small")
    # A folder that is named by a relative path, as from the shell.
    monkeypatch.setenv("ELMO_SCRATCH_MODELS", "models")
    equals_official("small")


def test_the_model_of_the_package(allennlp: Allennlp) -> None:
    allennlp("elmo", TOUR, "layers.hdf5", "--all", "--weight-file", "tiny")
    with LayerFile("layers.hdf5") as layers:
        assert (layers.facts.layers, layers.facts.width) == (3, 192)


def test_a_zip_file_of_the_nlpl_repository(
    equals_official: Callable[[str], None], tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "216.zip", "w") as file:
        file.write(RESIDUAL / "options.json", "options.json")
        file.write(RESIDUAL / "weights.hdf5", "model.hdf5")
    equals_official("216.zip")


def test_a_name_without_a_connection(
    allennlp: Allennlp, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises((SystemExit, ConfigurationError)) as error:
        allennlp("elmo", TOUR, "layers.hdf5", "--all", "--weight-file", "small")
    said = str(error.value) + capsys.readouterr().err
    assert "the model small can't be had: " in said and "ELMO_SCRATCH_MODELS" in said
    assert not Path("layers.hdf5").exists()
