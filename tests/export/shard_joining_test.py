import os
from pathlib import Path
from typing import Callable

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export import ExportSettings, InputText, Shard, export_layers, join_shards
from elmo_scratch.export.parts import PartFolder
from elmo_scratch.export.plan import Span
from elmo_scratch.interop import LayerFile

NewLayers = Callable[..., SentenceLayers]


def write_shard(
    shard: Shard,
    text: InputText,
    output: Path,
    layers: SentenceLayers,
    kept: str = "all",
) -> None:
    """Exports one shard of a text."""
    span = shard.span_of(text.num_sentences)
    export_layers(text, shard.file_of(output), layers, ExportSettings(kept), span=span)


def test_without_shards_there_is_nothing_to_join(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="such as x.hdf5.1-of-2, but there are none"):
        join_shards(tmp_path / "x.hdf5")


def test_a_missing_shard_is_named(new_layers: NewLayers, text: InputText, tmp_path: Path) -> None:
    for number in (1, 3):
        write_shard(Shard(number, 4), text, tmp_path / "x.hdf5", new_layers())
    with pytest.raises(ConfigurationError, match="the output of --shard 2/4, 4/4 is missing"):
        join_shards(tmp_path / "x.hdf5")
    assert not (tmp_path / "x.hdf5").exists()


def test_shards_of_two_divisions_are_an_error(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    for shard in (Shard(1, 2), Shard(1, 3)):
        write_shard(shard, text, tmp_path / "x.hdf5", new_layers())
    with pytest.raises(ConfigurationError, match="some of 2 and of 3"):
        join_shards(tmp_path / "x.hdf5")


def test_shards_of_two_exports_are_an_error(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    output = tmp_path / "x.hdf5"
    write_shard(Shard(1, 2), text, output, new_layers())
    write_shard(Shard(2, 2), text, output, new_layers(), "top")
    with pytest.raises(ConfigurationError, match="x.hdf5.2-of-2: expected a shard of the same"):
        join_shards(output)
    assert not output.exists()


def test_another_file_is_not_replaced_unasked(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    output = tmp_path / "x.hdf5"
    for shard in Shard.all_of(2):
        write_shard(shard, text, output, new_layers())
    output.write_text("precious")
    with pytest.raises(ConfigurationError, match="is not the output of this export"):
        join_shards(output)
    assert output.read_text() == "precious"
    join_shards(output, overwrite=True)
    assert len(os.listdir(tmp_path)) == 3


def test_what_a_killed_run_left_behind_is_cleared_away(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    output = tmp_path / "x.hdf5"
    for shard in Shard.all_of(2):
        write_shard(shard, text, output, new_layers())
    (tmp_path / "x.hdf5.parts").mkdir()
    (tmp_path / "x.hdf5.parts" / ".unfinished-output.hdf5.7.part").touch()
    join_shards(output, remove=True)
    assert os.listdir(tmp_path) == ["x.hdf5"]


def test_parts_of_a_run_without_shards_go_when_the_output_is_whole(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    output = tmp_path / "x.hdf5"
    for shard in Shard.all_of(2):
        write_shard(shard, text, output, new_layers())
    with LayerFile(Shard(1, 2).file_of(output)) as file:
        identity = file.facts.export
    folder = PartFolder(output)
    with folder.opened(identity, resume=False, overwrite=False):
        folder.file_of(Span(0, 3)).touch()
    assert folder.path.exists()
    join_shards(output, remove=True)
    assert os.listdir(tmp_path) == ["x.hdf5"]


def test_a_run_that_was_killed_while_it_removed_shards_goes_on(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    output = tmp_path / "x.hdf5"
    for shard in Shard.all_of(3):
        write_shard(shard, text, output, new_layers())
    join_shards(output)
    Shard(1, 3).file_of(output).unlink()
    content = output.read_bytes()
    join_shards(output, remove=True)
    assert os.listdir(tmp_path) == ["x.hdf5"]
    assert output.read_bytes() == content


def test_a_link_stays(new_layers: NewLayers, text: InputText, tmp_path: Path) -> None:
    output, elsewhere = tmp_path / "x.hdf5", tmp_path / "elsewhere.hdf5"
    for shard in Shard.all_of(2):
        write_shard(shard, text, output, new_layers())
    output.symlink_to(elsewhere)
    join_shards(output, remove=True)
    assert output.is_symlink() and elsewhere.stat().st_size > 0


def test_a_shard_by_the_name_of_the_whole_is_not_taken_for_it(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    output = tmp_path / "x.hdf5"
    for shard in Shard.all_of(2):
        write_shard(shard, text, output, new_layers())
    Shard(1, 2).file_of(output).rename(output)
    with pytest.raises(ConfigurationError, match="--shard 1/2 is missing"):
        join_shards(output, remove=True)
    with pytest.raises(ConfigurationError, match="is not the output of this export"):
        export_layers(text, output, new_layers(), ExportSettings("all"), resume=True)
    assert sorted(os.listdir(tmp_path)) == ["x.hdf5", "x.hdf5.2-of-2"]
    whole = Shard(2, 2).file_of(output)
    export_layers(text, output, new_layers(), ExportSettings("all"), overwrite=True)
    join_shards(output, remove=True)
    assert not whole.exists()
    with LayerFile(output) as file:
        assert len(file) == text.num_sentences
