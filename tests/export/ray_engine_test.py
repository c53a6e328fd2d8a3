import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.commands.command_error import command_errors
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export import (
    ExportSettings,
    InputText,
    ModelSource,
    RayEngine,
    export_layers,
)
from elmo_scratch.export.export import SENTENCES_A_TASK, _start, _Worker, cut
from elmo_scratch.export.parts import PartFolder, PartWriting
from elmo_scratch.export.plan import Span, facts_of
from tests.export.conftest import FILES, LINES, assert_same, data_sets

NewLayers = Callable[..., SentenceLayers]

SOURCE = ModelSource(str(FILES / "options.json"), str(FILES / "weights.hdf5"), "reset")


def test_spans_are_cut_into_pieces_for_all_workers() -> None:
    pieces = cut([Span(0, 50), Span(70, 120)], 2)
    assert len(pieces) >= 8
    numbers = [number for piece in pieces for number in range(*piece)]
    assert numbers == [*range(50), *range(70, 120)]


def test_no_piece_is_empty_or_too_large() -> None:
    assert cut([Span(5, 6)], 8) == [Span(5, 6)]
    pieces = cut([Span(0, 10**6)], 1)
    assert max(stop - start for start, stop in pieces) == SENTENCES_A_TASK


def test_carried_states_cannot_be_shared_out(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="--engine ray needs --state reset or warm"):
        export_layers(
            text,
            tmp_path / "x.hdf5",
            new_layers("carry"),
            ExportSettings(),
            engine=RayEngine(SOURCE, 2),
        )


def test_a_number_of_workers_out_of_range_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="expected --workers of 1 or more, got 0"):
        RayEngine(SOURCE, 0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A cluster that is there already, which these tests share: it takes long to start."""
    import ray

    _start(ray)
    yield
    ray.shutdown()


@pytest.mark.exhaustive
@pytest.mark.usefixtures("cluster")
def test_workers_have_the_priority_of_the_command() -> None:
    import ray

    @ray.remote
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, 0)

    assert ray.get(priority.remote()) == os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("cluster")
def test_more_workers_than_there_is_room_for_are_an_error(
    new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="processor for each of 999 workers"):
        export_layers(
            text, tmp_path / "x.hdf5", new_layers(), ExportSettings(), engine=RayEngine(SOURCE, 999)
        )
    assert os.listdir(tmp_path) == []


@pytest.mark.exhaustive
@pytest.mark.usefixtures("cluster")
def test_an_error_of_a_worker_is_the_one_it_had(new_layers: NewLayers, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(LINES), encoding="utf-8")
    source = SOURCE._replace(weight_file=str(tmp_path / "none.hdf5"))
    complaints = {
        "none.hdf5: there is no such file": RayEngine(source, 1),
        "is not that of the machine where": RayEngine(SOURCE._replace(state="carry"), 1),
        "No module named 'nowhere'": RayEngine(SOURCE, 1, packages=["nowhere"]),
    }
    for complaint, engine in complaints.items():
        with pytest.raises(ConfigurationError, match=f"could not start: .*{complaint}"):
            export_layers(
                InputText("text", tmp_path / "text.txt"),
                tmp_path / "x.hdf5",
                new_layers(),
                ExportSettings(),
                engine=engine,
            )


@pytest.mark.parametrize("is_alone", [True, False])
def test_workers_that_fill_the_processors_run_nothing_beside_the_bilm(
    is_alone: bool, new_layers: NewLayers, text: InputText, tmp_path: Path
) -> None:
    settings = ExportSettings()
    folder, facts = PartFolder(tmp_path / "x.hdf5"), facts_of(text, new_layers(), settings)
    writing = PartWriting(text, Span(0, len(LINES)), folder, facts, settings)
    worker = _Worker(SOURCE, writing, [], is_alone)
    assert worker._layers.is_alone == is_alone
    assert is_alone or not worker._layers.leaves_a_processor


def test_without_ray_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_scratch.export.export.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match="pip install 'ray"):
        RayEngine(SOURCE)


class RayThatEnds:
    """Takes the signal for itself while it starts, as Ray does."""

    def __init__(self, error: Optional[Exception]) -> None:
        self._error = error

    def init(self, **_: Any) -> None:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(number))
        if self._error is not None:
            raise self._error
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_while_ray_starts_is_answered_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as stop, command_errors("elmo", "x.hdf5"):
        _start(RayThatEnds(None))
    assert stop.value.code == 143
    with pytest.raises(ConnectionError):
        _start(RayThatEnds(ConnectionError("nobody there")))
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[List[int]]:
    """The process that was killed while it wrote a part, once there is one."""
    parts = tmp_path / "x.hdf5.parts"
    found: List[int] = []
    is_over = threading.Event()

    def kill_one() -> None:
        while not found and not is_over.is_set():
            # A file that is being written names its process.
            for path in parts.glob(".unfinished-*.part"):
                process = int(path.name.split(".")[-2])
                if process != os.getpid():
                    os.kill(process, signal.SIGKILL)
                    found.append(process)
                    return
            time.sleep(0.001)

    thread = threading.Thread(target=kill_one)
    thread.start()
    yield found
    is_over.set()
    thread.join()


@pytest.mark.exhaustive
@pytest.mark.usefixtures("cluster")
def test_a_worker_that_dies_does_not_show(
    new_layers: NewLayers, tmp_path: Path, killed: List[int]
) -> None:
    (tmp_path / "text.txt").write_text("\n".join(LINES * 10), encoding="utf-8")
    text = InputText("text", tmp_path / "text.txt")
    output = tmp_path / "x.hdf5"
    engine = RayEngine(SOURCE, 2)
    export_layers(text, output, new_layers(), ExportSettings(), engine=engine)
    assert killed
    export_layers(text, tmp_path / "whole.hdf5", new_layers(), ExportSettings())
    assert_same(data_sets(tmp_path / "whole.hdf5"), data_sets(output))
    assert sorted(os.listdir(tmp_path)) == ["text.txt", "whole.hdf5", "x.hdf5"]
