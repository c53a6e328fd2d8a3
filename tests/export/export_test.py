import logging
import multiprocessing
import os
import shutil
import time
from pathlib import Path
from typing import Any, Callable, List

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
from elmo_scratch.export import (
    export as layer_export,
)
from elmo_scratch.export import (
    parts as part_writing,
)
from elmo_scratch.export.export import has_parts
from elmo_scratch.export.plan import Span, estimated_size, in_words
from tests.export.conftest import FILES, LINES, assert_same, data_sets

NewLayers = Callable[..., SentenceLayers]


class Interrupted(Exception):
    """Stands for whatever ends a run."""


class _Interrupting:
    """Calls a function so many times."""

    def __init__(self, function: Callable[..., Any], calls: int) -> None:
        self._function = function
        self._calls = calls

    def __call__(self, *arguments: Any) -> Any:
        if self._calls == 0:
            raise Interrupted
        self._calls -= 1
        return self._function(*arguments)


@pytest.mark.parametrize("state", ["carry", "reset"])
def test_the_file_holds_what_the_bilm_computes(
    state: str, new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    export_layers(text, tmp_path / "x.hdf5", new_layers(state), ExportSettings(batch_size=8))
    found = data_sets(tmp_path / "x.hdf5")
    layers = new_layers(state)
    for start in range(0, len(LINES), 8):
        sentences = [line.split() for line in LINES[start : start + 8]]
        for number, vectors in enumerate(layers(sentences), start=start):
            assert numpy.array_equal(found[str(number)], vectors)


@pytest.mark.parametrize(
    "settings",
    [
        ExportSettings(batch_size=1),
        ExportSettings(batch_size=7),
        ExportSettings(max_tokens=40),
        ExportSettings(max_tokens=100_000),
    ],
)
@pytest.mark.parametrize("state", ["reset", "warm"])
def test_batches_do_not_show_where_no_state_is_carried(
    state: str, settings: ExportSettings, new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    for name, own in (("one", ExportSettings()), ("other", settings)):
        layers = new_layers(state)
        if state == "warm":
            layers.warm_up([line.split() for line in LINES[:5]])
        export_layers(text, tmp_path / name, layers, own)
    assert_same(data_sets(tmp_path / "one"), data_sets(tmp_path / "other"))


@pytest.mark.parametrize("state", ["carry", "reset"])
@pytest.mark.parametrize("settings", [ExportSettings(), ExportSettings(use_sentence_keys=True)])
def test_an_interrupted_export_goes_on_to_the_same_file(
    state: str,
    settings: ExportSettings,
    new_layers: NewLayers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = InputText("text", sorted(set(LINES)))
    settings = settings._replace(batch_size=4)
    # A block is one batch, so that there is more than one part without carried states too.
    monkeypatch.setattr("elmo_scratch.export.pipeline.BATCHES_SORTED_AT_ONCE", 1)
    whole, output = tmp_path / "whole.hdf5", tmp_path / "x.hdf5"
    export_layers(text, whole, new_layers(state), settings)
    for num_batches in (3, 5):
        layers = new_layers(state)
        monkeypatch.setattr(layers, "read", _Interrupting(layers.read, num_batches))
        with pytest.raises(Interrupted):
            export_layers(text, output, layers, settings, resume=True, engine=OneProcess(0))
        assert not output.exists() and has_parts(output) and not has_parts(whole)
    assert len(list(tmp_path.glob("x.hdf5.parts/0*.hdf5"))) >= 3
    export_layers(text, output, new_layers(state), settings, resume=True, engine=OneProcess(0))
    assert_same(data_sets(whole), data_sets(output))
    assert sorted(os.listdir(tmp_path)) == ["whole.hdf5", "x.hdf5"]


def test_parts_can_be_kept_whatever_is_overwritten(
    new_layers: NewLayers, text: InputText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, output = tmp_path / "whole.hdf5", tmp_path / "x.hdf5"
    settings = ExportSettings(batch_size=4)
    export_layers(text, whole, new_layers("carry"), settings)
    layers = new_layers("carry")
    monkeypatch.setattr(layers, "read", _Interrupting(layers.read, 9))
    with pytest.raises(Interrupted):
        export_layers(text, output, layers, settings, engine=OneProcess(0))
    (tmp_path / "x.hdf5").write_text("older")
    for other in (settings._replace(kept="top"), settings._replace(batch_size=5)):
        with pytest.raises(ConfigurationError, match="unfinished export of another"):
            export_layers(text, output, new_layers("carry"), other, overwrite=True, keep_parts=True)
    kept = len(list(tmp_path.glob("x.hdf5.parts/0*.hdf5")))
    assert kept >= 1
    layers = new_layers("carry")
    missing = -(-len(LINES) // settings.batch_size) - kept
    monkeypatch.setattr(layers, "read", _Interrupting(layers.read, missing))
    export_layers(text, output, layers, settings, overwrite=True, keep_parts=True)
    assert_same(data_sets(whole), data_sets(output))


def test_a_killed_export_goes_on_to_the_same_file(new_layers: NewLayers, tmp_path: Path) -> None:
    lines = LINES * 10
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    output = tmp_path / "x.hdf5"
    settings = ExportSettings(batch_size=2)

    def export() -> None:
        text, engine = InputText("text", tmp_path / "text.txt"), OneProcess(0.02)
        export_layers(text, output, new_layers("carry"), settings, resume=True, engine=engine)

    process = multiprocessing.get_context("fork").Process(target=export)
    process.start()
    parts = tmp_path / "x.hdf5.parts"
    while process.is_alive() and len(list(parts.glob("0*.hdf5"))) < 3:
        assert not output.exists()
        time.sleep(0.002)
    process.kill()
    process.join()
    assert not output.exists() and len(list(parts.glob("0*.hdf5"))) >= 3
    text = InputText("text", lines)
    export_layers(text, output, new_layers("carry"), settings, resume=True)
    export_layers(text, tmp_path / "whole.hdf5", new_layers("carry"), settings)
    assert_same(data_sets(tmp_path / "whole.hdf5"), data_sets(output))


def test_what_is_whole_is_not_made_again(
    new_layers: NewLayers, text: InputText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "x.hdf5"
    export_layers(text, output, new_layers(), ExportSettings())
    layers = new_layers()
    monkeypatch.setattr(layers, "read", None)
    export_layers(text, output, layers, ExportSettings(), resume=True)


def test_what_was_whole_when_a_run_was_killed_is_cleaned_up(
    new_layers: NewLayers, text: InputText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "x.hdf5"
    monkeypatch.setattr("elmo_scratch.export.pipeline.SENTENCES_A_PART", 10)
    with monkeypatch.context() as killed:
        killed.setattr("elmo_scratch.export.parts.PartFolder.remove", lambda _: None)
        export_layers(text, output, new_layers("carry"), ExportSettings(batch_size=4))
    assert (tmp_path / "x.hdf5.parts").exists()
    export_layers(text, output, new_layers("carry"), ExportSettings(batch_size=4), resume=True)
    assert os.listdir(tmp_path) == ["x.hdf5"]


def test_a_link_stays_and_what_it_leads_to_is_written(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "real.hdf5", tmp_path / "x.hdf5"
    link.symlink_to(target)
    for _ in range(2):
        export_layers(text, link, new_layers(), ExportSettings(), overwrite=True)
        assert link.is_symlink() and target.is_file()
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "x.hdf5"]
    assert os.listdir(target.parent) == ["real.hdf5"]


@pytest.mark.parametrize("is_linked", [False, True])
def test_the_output_may_not_replace_the_model(
    is_linked: bool, text: InputText, tmp_path: Path
) -> None:
    options, weights = (
        Path(shutil.copy(FILES / name, tmp_path)) for name in ("options.json", "weights.hdf5")
    )
    before = weights.read_bytes()
    layers = SentenceLayers.from_official(options, weights, state="reset")
    output = weights
    if is_linked:
        output = tmp_path / "x.hdf5"
        output.symlink_to(weights)
    with pytest.raises(ConfigurationError, match="the output would replace a file of the model"):
        export_layers(text, output, layers, ExportSettings(), overwrite=True)
    assert weights.read_bytes() == before


@pytest.mark.parametrize("change", ["text", "state", "kept", "file"])
def test_the_output_of_another_export_is_not_replaced_unasked(
    change: str, new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    output = tmp_path / "x.hdf5"
    if change == "file":
        output.write_text("precious")
    else:
        export_layers(text, output, new_layers(), ExportSettings())
    before = output.read_bytes()
    layers = new_layers("carry" if change == "state" else "reset")
    other = InputText("text", LINES[:3]) if change == "text" else text
    settings = ExportSettings("top" if change == "kept" else "all")
    for resume in (False, True):
        with pytest.raises(ConfigurationError, match="is not the output of this export"):
            export_layers(other, output, layers, settings, resume=resume)
    assert output.read_bytes() == before
    export_layers(other, output, layers, settings, overwrite=True)
    with h5py.File(output) as file:
        assert len(file) == other.num_sentences + 1


def test_the_batch_size_makes_no_other_export_unless_states_are_carried(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    for state, is_other in (("reset", False), ("carry", True)):
        output = tmp_path / state
        export_layers(text, output, new_layers(state), ExportSettings())
        settings = ExportSettings(batch_size=3)
        if is_other:
            with pytest.raises(ConfigurationError, match="is not the output of this export"):
                export_layers(text, output, new_layers(state), settings)
        else:
            export_layers(text, output, new_layers(state), settings)


def test_numbers_may_be_halved_and_packed(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    export_layers(text, tmp_path / "plain", new_layers(), ExportSettings())
    plain = data_sets(tmp_path / "plain")
    settings = ExportSettings(dtype="float16", compression="gzip")
    export_layers(text, tmp_path / "packed", new_layers(), settings)
    with h5py.File(tmp_path / "packed") as file:
        for number in range(len(LINES)):
            assert file[str(number)].compression == "gzip"
            assert file[str(number)].dtype == numpy.float16
            assert numpy.array_equal(file[str(number)], plain[str(number)].astype(numpy.float16))


@pytest.mark.parametrize(
    "settings, complaint",
    [
        (ExportSettings(batch_size=0), "expected --batch-size of 1 or more, got 0"),
        (ExportSettings(max_tokens=0), "expected --max-tokens of 1 or more, got 0"),
        (ExportSettings(max_tokens=9), "--max-tokens needs --state reset or warm"),
    ],
)
def test_settings_must_make_sense(
    settings: ExportSettings,
    complaint: str,
    new_layers: NewLayers,
    text: InputText,
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        export_layers(text, tmp_path / "x.hdf5", new_layers("carry"), settings)
    assert os.listdir(tmp_path) == []


def test_a_text_that_becomes_shorter_is_an_error(new_layers: NewLayers, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES), encoding="utf-8")
    text = InputText("text", path)
    path.write_text("\n".join(LINES[:5]), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="has become shorter"):
        export_layers(text, tmp_path / "x.hdf5", new_layers(), ExportSettings())
    assert os.listdir(tmp_path) == ["text.txt"]


class _Disturbed(OneProcess):
    """Does the work, while somebody else does something."""

    def __init__(self, disturb: Callable[[], Any]) -> None:
        super().__init__(0)
        self._disturb = disturb

    def write(self, *arguments: Any) -> None:
        super().write(*arguments)
        self._disturb()


@pytest.mark.parametrize("is_early", [True, False])
def test_a_text_that_changes_meanwhile_is_an_error(
    is_early: bool, new_layers: NewLayers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_scratch.export.pipeline.BATCHES_SORTED_AT_ONCE", 1)
    path, output = tmp_path / "text.txt", tmp_path / "x.hdf5"
    path.write_text("\n".join(LINES), encoding="utf-8")
    text = InputText("text", path)

    def change() -> None:
        (tmp_path / "other.txt").write_text("\n".join(LINES[::-1]), encoding="utf-8")
        (tmp_path / "other.txt").replace(path)

    settings = ExportSettings(batch_size=4)
    if is_early:
        change()
    with pytest.raises(ConfigurationError, match="the text has changed since it was checked"):
        export_layers(text, output, new_layers("reset"), settings, engine=_Disturbed(change))
    # What was done before is of the right text.
    assert sorted(os.listdir(tmp_path)) == ["text.txt"] + ["x.hdf5.parts"] * (not is_early)
    path.write_text("\n".join(LINES), encoding="utf-8")
    export_layers(text, output, new_layers("reset"), settings, resume=True)
    export_layers(InputText("text", LINES), tmp_path / "y.hdf5", new_layers("reset"), settings)
    assert_same(data_sets(output), data_sets(tmp_path / "y.hdf5"))


def test_a_text_may_be_written_again_as_it_was(new_layers: NewLayers, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES), encoding="utf-8")
    text = InputText("text", path)
    os.utime(path, (0, 0))
    export_layers(text, tmp_path / "x.hdf5", new_layers(), ExportSettings())
    assert set(map(str, range(len(LINES)))) < set(data_sets(tmp_path / "x.hdf5"))


def test_an_output_without_all_sentences_is_an_error(
    new_layers: NewLayers, text: InputText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_scratch.export.pipeline.BATCHES_SORTED_AT_ONCE", 1)
    monkeypatch.setattr(part_writing, "SECONDS_BETWEEN_LOOKS", 0.0)
    output, settings = tmp_path / "x.hdf5", ExportSettings(batch_size=8)
    parts = tmp_path / "x.hdf5.parts"

    def remove() -> None:
        for part in (Span(8, 16), Span(24, 32), Span(48, 50)):
            (parts / f"{part.start:012d}-{part.stop:012d}.hdf5").unlink()

    missing = "those of the sentences 8 to 15, 24 to 31, 48 to 49 are not there.*--resume"
    with pytest.raises(ConfigurationError, match=missing):
        export_layers(text, output, new_layers(), settings, engine=_Disturbed(remove))
    assert len(list(parts.glob("0*.hdf5"))) == 4 and not output.exists()
    export_layers(text, output, new_layers(), settings, resume=True)
    export_layers(text, tmp_path / "whole.hdf5", new_layers(), settings)
    assert_same(data_sets(tmp_path / "whole.hdf5"), data_sets(output))


def test_a_part_that_a_file_system_lists_late_is_waited_for(
    new_layers: NewLayers, text: InputText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "hidden"
    part = tmp_path / "x.hdf5.parts" / f"{0:012d}-{len(LINES):012d}.hdf5"
    looks: List[float] = []

    def look_later(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            hidden.rename(part)

    monkeypatch.setattr(part_writing.time, "sleep", look_later)
    engine = _Disturbed(lambda: part.rename(hidden))
    export_layers(text, tmp_path / "x.hdf5", new_layers(), ExportSettings(), engine=engine)
    assert looks == [part_writing.SECONDS_BETWEEN_LOOKS] * 2
    assert os.listdir(tmp_path) == ["x.hdf5"]


def test_what_a_killed_run_left_takes_no_room(
    new_layers: NewLayers, text: InputText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = tmp_path / "x.hdf5.parts"
    parts.mkdir()
    (parts / ".unfinished-output.hdf5.7.part").touch()
    found = []
    monkeypatch.setattr(
        layer_export, "check_room", lambda *_, **__: found.extend(os.listdir(parts))
    )
    export_layers(text, tmp_path / "x.hdf5", new_layers(), ExportSettings(), resume=True)
    assert sorted(found) == ["export.json", "lock"]


def test_room_for_two_is_asked_for_where_parts_will_be_joined(
    new_layers: NewLayers, text: InputText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, settings = tmp_path / "x.hdf5", ExportSettings(batch_size=4)
    asked_for: List[int] = []
    monkeypatch.setattr(
        layer_export, "check_room", lambda *_, num_copies, **__: asked_for.append(num_copies)
    )

    class Workers(OneProcess):
        follows_the_text = False

    export_layers(text, output, new_layers("carry"), settings)
    export_layers(text, output, new_layers(), settings, overwrite=True, engine=Workers())
    assert asked_for == [1, 2]
    output.unlink()
    layers = new_layers("carry")
    monkeypatch.setattr(layers, "read", _Interrupting(layers.read, 3))
    with pytest.raises(Interrupted):
        export_layers(text, output, layers, settings, engine=OneProcess(0))
    export_layers(text, output, new_layers("carry"), settings, resume=True)
    assert asked_for == [1, 2, 1, 2]


def test_how_to_go_on_where_another_file_will_be_replaced(
    new_layers: NewLayers, text: InputText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, settings = tmp_path / "x.hdf5", ExportSettings(batch_size=4)
    output.write_text("old")
    layers = new_layers("carry")
    monkeypatch.setattr(layers, "read", _Interrupting(layers.read, 3))
    with pytest.raises(Interrupted):
        export_layers(text, output, layers, settings, overwrite=True, engine=OneProcess(0))
    way_on = r"has done \d+ sentences: go on and replace it with --overwrite --resume"
    with pytest.raises(ConfigurationError, match=way_on):
        export_layers(text, output, new_layers("carry"), settings, resume=True)
    assert output.read_text() == "old"
    export_layers(text, output, new_layers("carry"), settings, resume=True, overwrite=True)
    assert set(map(str, range(len(LINES)))) < set(data_sets(output))


@pytest.mark.parametrize("settings", [ExportSettings(), ExportSettings(forget_sentences=True)])
def test_shards_join_to_the_same_file(
    settings: ExportSettings, new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    output = tmp_path / "x.hdf5"
    for shard in Shard.all_of(3):
        span = shard.span_of(text.num_sentences)
        export_layers(text, shard.file_of(output), new_layers(), settings, span=span)
    join_shards(output, remove=True)
    export_layers(text, tmp_path / "whole.hdf5", new_layers(), settings)
    assert_same(data_sets(tmp_path / "whole.hdf5"), data_sets(output))
    assert sorted(os.listdir(tmp_path)) == ["whole.hdf5", "x.hdf5"]


@pytest.mark.parametrize(
    "settings",
    [
        ExportSettings(),
        ExportSettings("top", dtype="float16"),
        ExportSettings(pool="mean", forget_sentences=True),
    ],
)
def test_the_size_is_known_before_the_start(
    settings: ExportSettings,
    new_layers: NewLayers,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    many = InputText("text", LINES * 20)
    layers, output = new_layers(), tmp_path / "x.hdf5"
    with caplog.at_level(logging.INFO, logger=layer_export.__name__):
        export_layers(many, output, layers, settings)
    size = estimated_size(many, Span(0, len(LINES) * 20), layers, settings)
    assert size == pytest.approx(output.stat().st_size, rel=0.25)
    assert f"x.hdf5 will take about {in_words(size)}" in caplog.text
