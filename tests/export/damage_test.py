"""Bits that change on the disk between one run and the next, or between writing and joining."""

import logging
from pathlib import Path
from typing import Callable

import h5py
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export import (
    ExportSettings,
    InputText,
    OneProcess,
    Shard,
    export_layers,
    join_shards,
)
from elmo_scratch.export.parts import PartFolder, PartWriting
from tests.export.conftest import assert_same, data_sets

NewLayers = Callable[..., SentenceLayers]
SETTINGS = ExportSettings(batch_size=16)


def bend(path: Path) -> None:
    """Changes one bit of a number."""
    with h5py.File(path) as file:
        key = next(key for key in file if key != "sentence_to_index")
        place = file[key].id.get_offset() + 2
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


class _Bending(OneProcess):
    """Writes all parts, of which the first is damaged then."""

    def write(self, writing: PartWriting, *arguments: object) -> None:  # type: ignore[override]
        super().write(writing, *arguments)  # type: ignore[arg-type]
        bend(writing.folder.file_of(writing.folder.parts()[0]))


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each block of sentences make a part."""
    monkeypatch.setattr("elmo_scratch.export.pipeline.SENTENCES_A_PART", 1)


def test_a_part_that_is_bent_before_it_is_joined_is_named_and_then_made_anew(
    parts: None,
    new_layers: NewLayers,
    text: InputText,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    output = tmp_path / "x.hdf5"
    export_layers(text, tmp_path / "whole.hdf5", new_layers("carry"), SETTINGS)
    message = "000000000000-000000000016.hdf5: expected the numbers .*--resume"
    with pytest.raises(ConfigurationError, match=message):
        export_layers(text, output, new_layers("carry"), SETTINGS, engine=_Bending())
    assert not output.exists()
    with caplog.at_level(logging.WARNING):
        export_layers(text, output, new_layers("carry"), SETTINGS, resume=True)
    (warning,) = caplog.messages
    assert "000000000000-000000000016.hdf5" in warning and warning.endswith("it is made anew")
    assert_same(data_sets(tmp_path / "whole.hdf5"), data_sets(output))


def test_an_output_that_is_bent_is_not_whole(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    output = tmp_path / "x.hdf5"
    export_layers(text, output, new_layers(), SETTINGS)
    bend(output)
    with pytest.raises(ConfigurationError, match="x.hdf5: expected the numbers"):
        export_layers(text, output, new_layers(), SETTINGS, resume=True)


def test_a_shard_that_is_bent_is_not_joined(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    output = tmp_path / "x.hdf5"
    shards = [shard.file_of(output) for shard in Shard.all_of(2)]
    for shard, path in zip(Shard.all_of(2), shards):
        span = shard.span_of(text.num_sentences)
        export_layers(text, path, new_layers(), SETTINGS, span=span)
    bend(shards[1])
    with pytest.raises(ConfigurationError, match="x.hdf5.2-of-2: expected the numbers"):
        join_shards(output, remove=True)
    assert not output.exists() and all(path.exists() for path in shards)


def test_a_state_that_is_bent_is_an_error(tmp_path: Path) -> None:
    folder = PartFolder(tmp_path / "x.hdf5")
    with folder.opened("a", resume=False, overwrite=False):
        state = {name: numpy.arange(7, dtype="float32") for name in ("hidden", "cell")}
        folder.keep_state(10, state)
        (path,) = folder.path.glob("*.npz")
        content = path.read_bytes()
        for name in state:
            place = content.index(state[name].tobytes(), content.index(name.encode()))
            path.write_bytes(content[:place] + b"\1" + content[place + 1 :])
            with pytest.raises(ConfigurationError, match="can't be read.*CRC.*--overwrite"):
                folder.state_before(10)
