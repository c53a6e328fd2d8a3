import json
import shutil
from pathlib import Path
from typing import List

import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.export import ModelSource
from elmo_scratch.modules.token_encoders import CharCnnEncoder
from tests.export.conftest import FILES

WORDS = ["the", "river", "bank"]
OFFICIAL = ModelSource(str(FILES / "options.json"), str(FILES / "weights.hdf5"), "reset")


def test_official_files_are_read() -> None:
    assert OFFICIAL.load()([WORDS])[0].shape == (3, 3, 12)


def test_an_archive_is_read(bilm_archive: Path) -> None:
    assert ModelSource(weight_file=str(bilm_archive)).load()([WORDS])[0].shape == (3, 3, 64)


def test_the_output_folder_of_a_training_is_read(bilm_archive: Path) -> None:
    assert ModelSource(weight_file=str(bilm_archive.parent)).load().num_layers == 3


def test_it_warms_up() -> None:
    warm = OFFICIAL._replace(state="warm", warm_up=[WORDS]).load()
    assert not numpy.array_equal(warm([WORDS])[0], OFFICIAL.load()([WORDS])[0])


def test_a_default_text_gives_way_to_one_that_is_given() -> None:
    warm = OFFICIAL._replace(state="warm", default_warm_up=[["other"]])
    given = warm._replace(warm_up=[WORDS]).load()
    assert given.identity != warm.load().identity
    assert given.identity == OFFICIAL._replace(state="warm", warm_up=[WORDS]).load().identity


def test_a_bilm_that_is_warm_already_stays_as_it_is(bilm_archive: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bilm_archive.parent, tmp_path / "run")
    cold = ModelSource(weight_file=str(folder), state="warm").read()
    assert not cold.is_warm
    cold.warm_up([["other"]])
    config = json.loads((folder / "config.json").read_text())
    config["model"]["bilm"]["state"] = "warm"
    (folder / "config.json").write_text(json.dumps(config))
    weights = torch.load(folder / "best.th", weights_only=True)
    for name, part in cold.bilm.state_memory.state_dict().items():
        weights[f"bilm.state_memory.{name}"] = part
    torch.save(weights, folder / "best.th")
    source = ModelSource(weight_file=str(folder), state="warm", default_warm_up=[WORDS])
    by_default = source.load()
    assert numpy.array_equal(by_default([WORDS])[0], cold([WORDS])[0])
    assert by_default.identity == source._replace(default_warm_up=None).load().identity
    assert source._replace(warm_up=[WORDS]).load().identity != by_default.identity


def test_the_warm_state_needs_a_text() -> None:
    with pytest.raises(ConfigurationError, match="weights.hdf5: the state warm needs a text"):
        OFFICIAL._replace(state="warm").load()


def test_a_text_to_warm_up_with_needs_the_warm_state() -> None:
    with pytest.raises(ConfigurationError, match="needs --state warm"):
        OFFICIAL._replace(warm_up=[WORDS]).load()


def test_paths_hold_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FILES)
    relative = OFFICIAL._replace(options_file="options.json", weight_file="weights.hdf5")
    source = relative.from_anywhere()
    monkeypatch.chdir(tmp_path)
    assert source.load().identity == OFFICIAL.load().identity
    (tmp_path / "task.tar.gz").touch()
    one = ModelSource(weight_file="task.tar.gz#elmo").from_anywhere()
    assert one.weight_file == f"{tmp_path / 'task.tar.gz'}#elmo"
    released = ModelSource(weight_file="https://example.org/weights.hdf5")
    assert released.from_anywhere() == released


def test_a_process_that_computes_nothing_takes_no_gpu() -> None:
    source = OFFICIAL._replace(cuda_device=3, words=WORDS)
    assert source.at_rest() == OFFICIAL
    # What products run in there is told by the GPU alone.
    source = source._replace(matmul_dtype="bfloat16")
    assert source.at_rest() == source._replace(words=())
    # No GPU has such a number; that is told as ever.
    assert OFFICIAL._replace(cuda_device=-2).at_rest().cuda_device == -2


def test_words_computed_ahead_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, ahead = OFFICIAL.load(), OFFICIAL._replace(words=WORDS).load()
    encoded: List[int] = []
    encode = CharCnnEncoder.encode_distinct

    def watched(encoder: CharCnnEncoder, ids: torch.Tensor) -> torch.Tensor:
        encoded.append(len(ids))
        return encode(encoder, ids)

    monkeypatch.setattr(CharCnnEncoder, "encode_distinct", watched)
    assert numpy.array_equal(ahead([WORDS])[0], plain([WORDS])[0])
    # The marks of sentences, which both encode; and the words.
    assert encoded == [2, 2 + len(WORDS)]


def test_a_missing_archive_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="there is no such archive"):
        ModelSource(weight_file="nowhere/model.tar.gz").load()


def test_an_archive_goes_without_options() -> None:
    source = OFFICIAL._replace(weight_file="nowhere/model.tar.gz")
    with pytest.raises(ConfigurationError, match="model.tar.gz: an archive holds its options"):
        source.load()


def test_one_official_file_without_the_other_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = tmp_path / "released.json"
    monkeypatch.setattr("elmo_scratch.export.model_source.RELEASED_OPTIONS", str(released))
    monkeypatch.setattr("elmo_scratch.export.model_source.RELEASED_WEIGHTS", str(released))
    with pytest.raises(ConfigurationError, match="--options-file was not given: .*Name both"):
        OFFICIAL._replace(options_file=None).load()
    with pytest.raises(ConfigurationError, match="--weight-file was not given: .*Name both"):
        OFFICIAL._replace(weight_file=None).load()
    with pytest.raises(ConfigurationError, match="no such archive$"):
        ModelSource().load()
