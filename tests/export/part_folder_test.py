from contextlib import ExitStack
from pathlib import Path
from typing import List

import h5py
import numpy
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export.export import check_export_place
from elmo_scratch.export.parts import PartFolder
from elmo_scratch.export.plan import Span
from tests import PROJECT_ROOT

GOLDEN = PROJECT_ROOT / "tests" / "golden"

WHOLE = Span(0, 100)


@pytest.fixture
def folder(tmp_path: Path) -> PartFolder:
    return PartFolder(tmp_path / "layers.hdf5")


def finish(folder: PartFolder, *spans: Span) -> None:
    """Makes these parts be there."""
    for span in spans:
        with h5py.File(folder.file_of(span), "w") as file:
            for number in range(*span):
                file[str(number)] = numpy.zeros((1, 1, 2), "float32")


def test_it_lies_beside_the_output(folder: PartFolder, tmp_path: Path) -> None:
    assert folder.path == tmp_path / "layers.hdf5.parts"


def test_what_is_missing_lies_between_what_is_there(folder: PartFolder) -> None:
    with folder.opened("a", resume=False, overwrite=False):
        assert folder.missing(WHOLE) == [WHOLE]
        finish(folder, Span(60, 80), Span(0, 10), Span(10, 30))
        assert folder.parts() == [Span(0, 10), Span(10, 30), Span(60, 80)]
        assert folder.missing(WHOLE) == [Span(30, 60), Span(80, 100)]
        finish(folder, Span(80, 100), Span(30, 60))
        assert folder.missing(WHOLE) == []


def test_no_sentence_is_in_two_parts(folder: PartFolder) -> None:
    folder.path.mkdir()
    # Of two divisions of the text.
    finish(folder, Span(0, 20), Span(0, 40), Span(20, 40), Span(30, 60), Span(80, 100))
    assert folder.parts() == [Span(0, 40), Span(80, 100)]
    assert folder.missing(WHOLE) == [Span(40, 80)]
    finish(folder, Span(40, 80))
    assert folder.parts() == [Span(0, 40), Span(40, 80), Span(80, 100)]
    assert folder.missing(WHOLE) == []


def test_without_parts_nothing_stays(folder: PartFolder) -> None:
    with folder.opened("a", resume=True, overwrite=False):
        (folder.path / "unfinished-0.hdf5").write_text("")
    assert not folder.path.exists()


def test_parts_stay_for_the_next_run(folder: PartFolder) -> None:
    with pytest.raises(KeyboardInterrupt):
        with folder.opened("a", resume=False, overwrite=False):
            finish(folder, Span(0, 10))
            raise KeyboardInterrupt
    with folder.opened("a", resume=True, overwrite=False):
        assert folder.parts() == [Span(0, 10)]


def test_parts_are_neither_lost_nor_used_unasked(folder: PartFolder) -> None:
    with folder.opened("a", resume=False, overwrite=False):
        finish(folder, Span(0, 10))
    with pytest.raises(ConfigurationError, match="10 sentences of an unfinished run.*--resume"):
        with folder.opened("a", resume=False, overwrite=False):
            pass
    assert folder.parts() == [Span(0, 10)]


@pytest.mark.parametrize("resume", [False, True])
def test_parts_of_another_export_are_an_error(resume: bool, folder: PartFolder) -> None:
    with folder.opened("a", resume=False, overwrite=False):
        finish(folder, Span(0, 10))
    with pytest.raises(ConfigurationError, match="of another text, another model"):
        with folder.opened("b", resume=resume, overwrite=False):
            pass
    assert folder.parts() == [Span(0, 10)]


@pytest.mark.parametrize("identity", ["a", "b"])
def test_overwriting_starts_anew(identity: str, folder: PartFolder) -> None:
    with folder.opened("a", resume=False, overwrite=False):
        finish(folder, Span(0, 10))
        folder.keep_state(10, {"hidden": numpy.ones(2)})
    with folder.opened(identity, resume=False, overwrite=True):
        assert folder.parts() == []
        with pytest.raises(ConfigurationError, match="No such file"):
            folder.state_before(10)


@pytest.mark.parametrize("identity, kept", [("a", [Span(0, 10)]), ("b", [])])
def test_overwriting_goes_on_with_its_own_parts_where_that_is_wanted(
    identity: str, kept: List[Span], folder: PartFolder
) -> None:
    with folder.opened("a", resume=False, overwrite=True):
        finish(folder, Span(0, 10))
    with folder.opened(identity, resume=True, overwrite=True):
        assert folder.parts() == kept


def test_parts_of_which_nothing_says_whose_they_are_are_not_used(folder: PartFolder) -> None:
    with folder.opened("a", resume=False, overwrite=False):
        finish(folder, Span(0, 10))
    (folder.path / "export.json").unlink()
    for resume in (False, True):
        with pytest.raises(ConfigurationError, match="of another text, another model"):
            with folder.opened("a", resume=resume, overwrite=False):
                pass
    with folder.opened("a", resume=True, overwrite=True):
        assert folder.parts() == []


@pytest.mark.parametrize("name", ["notes.txt", "2024-01-02.hdf5"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_no_part_is_never_removed(overwrite: bool, name: str, folder: PartFolder) -> None:
    folder.path.mkdir()
    (folder.path / name).write_text("precious")
    assert folder.parts() == []
    with pytest.raises(ConfigurationError, match=f"nothing but parts.*there is {name}"):
        with folder.opened("a", resume=False, overwrite=overwrite):
            pass
    folder.remove()
    assert [path.name for path in folder.path.iterdir()] == [name]


def test_it_goes_with_the_export_that_it_is_of(folder: PartFolder) -> None:
    folder.remove_if_of("a")
    with folder.opened("a", resume=False, overwrite=False):
        finish(folder, Span(0, 10))
    folder.remove_if_of("b")
    assert folder.parts() == [Span(0, 10)]
    folder.remove_if_of("a")
    assert not folder.path.exists()


def test_what_a_killed_process_was_writing_is_removed(folder: PartFolder) -> None:
    with folder.opened("a", resume=False, overwrite=False):
        finish(folder, Span(0, 10))
    leftovers = [folder.path / name for name in (".x.hdf5.123.part", "unfinished-10.hdf5")]
    for leftover in leftovers:
        leftover.write_text("half")
    with folder.opened("a", resume=True, overwrite=False):
        assert not any(leftover.exists() for leftover in leftovers)


def test_only_one_process_writes_at_a_time(folder: PartFolder) -> None:
    with folder.opened("a", resume=False, overwrite=False):
        with pytest.raises(ConfigurationError, match="another process is writing there"):
            with PartFolder(folder.path.with_suffix("")).opened("a", resume=True, overwrite=False):
                pass


def test_what_another_process_begins_after_the_end_is_left_alone(folder: PartFolder) -> None:
    other = PartFolder(folder.path.with_suffix(""))
    unfinished = folder.path / "unfinished-0.hdf5"
    with ExitStack() as another_process:
        with folder.opened("a", resume=False, overwrite=False):
            folder.remove()
            another_process.enter_context(other.opened("b", resume=False, overwrite=False))
            unfinished.write_text("half")
        assert unfinished.exists() and (folder.path / "export.json").exists()
    assert not folder.path.exists()


def test_a_state_is_what_it_was(folder: PartFolder) -> None:
    state = {
        "hidden": numpy.arange(4.0).reshape(2, 2),
        "cell": numpy.array([[1e-30]], numpy.float32),
    }
    with folder.opened("a", resume=False, overwrite=False):
        assert folder.state_before(0) is None
        folder.keep_state(10, state)
        folder.keep_state(20, None)
        kept = folder.state_before(10)
        assert kept is not None
        assert all(numpy.array_equal(kept[name], state[name]) for name in state)
        with pytest.raises(ConfigurationError, match="20.state.npz.*can't be read.*--overwrite"):
            folder.state_before(20)


def test_a_state_that_cannot_be_read_is_an_error(folder: PartFolder) -> None:
    with folder.opened("a", resume=False, overwrite=False):
        folder.keep_state(10, {"hidden": numpy.ones(2)})
        (path,) = folder.path.glob("*.npz")
        path.write_bytes(path.read_bytes()[:50])
        with pytest.raises(ConfigurationError, match="can't be read.*--overwrite"):
            folder.state_before(10)


def test_a_state_of_another_bilm_is_an_error_that_tells_the_way_out(folder: PartFolder) -> None:
    layers = SentenceLayers.from_pretrained(str(GOLDEN / "official"), state="carry")
    layers([["The", "bank"]])
    carried = layers.carried()
    assert carried is not None
    with folder.opened("a", resume=False, overwrite=False):
        folder.keep_state(10, carried)
        folder.carry_on(layers, 10)
        folder.keep_state(10, {name: part[..., 1:] for name, part in carried.items()})
        with pytest.raises(ConfigurationError) as error:
            folder.carry_on(layers, 10)
    told = str(error.value.message)
    assert f"{folder.path}/000000000010.state.npz: the state to go on from is of another b" in told
    assert "expected a state whose 'hidden' has the shape" in told and "\n" not in told
    assert told.endswith(f"Start anew with --overwrite, or without the folder {folder.path}.")


def test_a_file_in_its_place_is_an_error(folder: PartFolder) -> None:
    folder.path.write_text("")
    with pytest.raises(ConfigurationError, match="expected a folder of parts, not a file"):
        with folder.opened("a", resume=False, overwrite=False):
            pass


def test_a_name_without_room_for_that_of_the_parts_is_refused(tmp_path: Path) -> None:
    check_export_place(tmp_path / (249 * "x"))
    with pytest.raises(
        ConfigurationError, match="語: expected a name of at most 249 bytes.* has 252"
    ):
        check_export_place(tmp_path / (84 * "語"))
